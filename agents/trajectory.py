"""An attempt's conversation on disk: one JSON message a line, appended whole steps at a time, never rewritten."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

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

        An open submit stays open: nothing was lost, its checks are still to be run. Raises `ValueError` for a broken line further up.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        messages, whole_bytes = _messages(data)
        if whole_bytes < len(data):
            os.truncate(self.path, whole_bytes)
        lost = [interrupted(call) for call in open_calls(messages) if call.name != SUBMIT]
        if lost:
            self.append(lost)
        return [*messages, *lost]

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


def _messages(data: bytes) -> tuple[list[Message], int]:
    """The messages, and how many bytes they take: less than there are when the last line is torn."""
    messages: list[Message] = []
    position = 0
    while position < len(data):
        end = data.find(b"\n", position) + 1
        try:
            messages.append(_decode(data[position : end - 1] if end else data[position:]))
        except msgspec.MsgspecError as error:
            if end in (0, len(data)):
                break
            raise ValueError(f"line {len(messages) + 1} of a trajectory is broken: {error}") from None
        if not end:  # whole but for its line end: torn all the same, the next line would be glued to it
            messages.pop()
            break
        position = end
    return messages, position
