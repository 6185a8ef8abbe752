"""Server-sent events out of bytes, whichever way the network cut them.

Follows the event-stream rules of the WHATWG HTML standard (section 9.2.6) for what a chat stream can hold: data lines, comments, other
fields (skipped), LF, CRLF and CR line ends, a byte order mark. One deviation: an event whose closing blank line never came counts, since
some servers end their last event so; whether the reply was whole is told by its finish reason, not by the framing.
"""

from __future__ import annotations

import re

from agents.errors import ModelFault

LIMIT_BYTES = 64 * 1024 * 1024
"""The longest event. A tool call's argument may come in one piece, so this is far above any of those."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Feed it bytes, get the data of the events that they complete. One per response."""

    __slots__ = ("_after_cr", "_data", "_first", "_parts", "_parts_bytes")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # the unfinished line, in pieces: joining them for each read would cost the square of its length
        self._parts_bytes = 0
        self._data: list[bytes] = []  # data lines of the unfinished event
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
        return self._whole(chunk) or self._lines(chunk)

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
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._data.append(b"")
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._parts.append(piece)
        self._parts_bytes += len(piece)
        if self._parts_bytes > LIMIT_BYTES:
            raise ModelFault(f"the stream held an event of more than {LIMIT_BYTES // 2**20} MiB")
