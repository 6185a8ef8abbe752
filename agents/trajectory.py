"""An attempt's conversation on disk: one JSON message a line, appended whole steps at a time, never rewritten."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from agents.decoding import NotUnderstood
from agents.errors import TrajectoryDamaged
from agents.history import interrupted, open_calls
from agents.messages import Message
from agents.submission import SUBMIT

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


class Trajectory:
    """The file need not exist; its folder must. One writer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[Message]:
        """All messages. A torn last line is cut off; tool calls left without a result are closed as interrupted, in the file too.

        An open submit stays open: nothing was lost, its checks are still to be run. Raises `TrajectoryDamaged` for a broken line further
        up: an agent that has forgotten what it did must not go on as if it had not done it.
        """
        data = self._data()
        messages, whole_bytes = _messages(self.path, data)
        if whole_bytes < len(data):
            os.truncate(self.path, whole_bytes)
        lost = [interrupted(call) for call in open_calls(messages) if call.name != SUBMIT]
        if lost:
            self.append(lost)
        return [*messages, *lost]

    def readable(self) -> list[Message]:
        """Whatever can be read, for those who only look back at it: damaged lines are left out, and nothing is mended."""
        messages: list[Message] = []
        for line in self._data().split(b"\n"):
            with suppress(NotUnderstood):
                messages.append(read_line(line))
        return messages

    def _data(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""

    def append(self, messages: Sequence[Message]) -> None:
        """One write, all of it or nothing (OSError: a full disk). Survives the death of the process; not flushed to the disk's platters."""
        data = b"".join(_encode(message) + b"\n" for message in messages)
        with self.path.open("ab", buffering=0) as file:
            before_bytes = os.fstat(file.fileno()).st_size
            try:
                written = 0
                while written < len(data):  # a disk that fills up takes a part first
                    written += file.write(data[written:])
            except OSError:
                file.truncate(before_bytes)
                raise


def read_line(line: bytes) -> Message:
    """Raises `NotUnderstood` for a line that is torn or damaged."""
    try:
        return _decode(line)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)) from None


def _messages(path: Path, data: bytes) -> tuple[list[Message], int]:
    """The messages, and how many bytes they take: less than there are when the last line is torn."""
    messages: list[Message] = []
    position = 0
    while position < len(data):
        end = data.find(b"\n", position) + 1
        try:
            messages.append(read_line(data[position : end - 1] if end else data[position:]))
        except NotUnderstood as damage:
            if end in (0, len(data)):
                break
            raise TrajectoryDamaged(path, line=len(messages) + 1, reason=str(damage)) from None
        if not end:  # whole but for its line end: torn all the same, the next line would be glued to it
            messages.pop()
            break
        position = end
    return messages, position
