"""Server-sent events out of bytes, whichever way the network cut them.

Follows the event-stream rules of the WHATWG HTML standard (section 9.2.6) for what a chat stream can hold: data lines, comments, other
fields (skipped), LF, CRLF and CR line ends, a byte order mark. One deviation: an event whose closing blank line never came counts, since
some servers end their last event so; whether the reply was whole is told by its finish reason, not by the framing.
"""

from __future__ import annotations

import re

from agents.errors import ModelFault

LIMIT_BYTES = 4 << 20
"""The longest event. A tool call's arguments may come in one piece: this is several times what the longest reply can hold."""

_LINE_BYTES = 32
"""What a line takes beside its text."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Feed it bytes, get the data of the events that they complete. One per response."""

    __slots__ = ("_after_cr", "_data", "_data_bytes", "_first", "_parts", "_parts_bytes")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # the unfinished line, in pieces: joining them for each read would cost the square of its length
        self._parts_bytes = 0
        self._data: list[bytes] = []  # data lines of the unfinished event
        self._data_bytes = 0
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Data of each event completed by `chunk`. Raises `ModelFault` for an event above `LIMIT_BYTES`."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._keep(chunk)
            return []
        if self._parts:
            self._parts.append(chunk)
            chunk = b"".join(self._parts)
            self._parts.clear()
            self._parts_bytes = 0
        events = self._whole(chunk) or self._lines(chunk)
        if len(chunk) > LIMIT_BYTES and any(len(event) > LIMIT_BYTES for event in events):
            raise _too_long()
        return events

    def close(self) -> list[bytes]:
        """Data of the last event, when the stream ended without its blank line."""
        return self.feed(b"\n\n") if self._parts or self._data else []

    def _whole(self, chunk: bytes) -> list[bytes]:
        """The usual case: nothing but whole events of one `data: ` line each. [] when `chunk` is anything else."""
        if self._data or b"\r" in chunk or not (chunk.startswith(b"data: ") and chunk.endswith(b"\n\n")):
            return []
        events = chunk[6:-2].split(b"\n\ndata: ")
        if chunk.count(b"\n") != 2 * len(events):
            return []
        self._first = False
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        events: list[bytes] = []
        lines = _LINE_END.split(chunk)
        self._after_cr = chunk.endswith(b"\r")
        self._keep(lines.pop())
        for line in lines:
            if self._first:
                self._first = False
                line = line.removeprefix(_BOM)
            if line.startswith(b"data:"):
                self._take(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._take(b"")
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
                self._data_bytes = 0
        return events

    def _take(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data) + _LINE_BYTES
        if self._data_bytes > LIMIT_BYTES:
            raise _too_long()

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._parts.append(piece)
        self._parts_bytes += len(piece)
        if self._parts_bytes > LIMIT_BYTES:
            raise _too_long()


def _too_long() -> ModelFault:
    return ModelFault(f"the stream held an event of more than {LIMIT_BYTES / 2**20:.3g} MiB")
