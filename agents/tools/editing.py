"""One exact replacement in a file's bytes.

Covers: any encoding in which the quoted text is valid UTF-8 (the rest of the file is never decoded), BOM, last line with or without its
line end, LF, CRLF and mixed line ends. Text matches whatever kind of line end the file has, and the new text takes the kind of
the place it goes to. Everything else must match character by character; the new text is literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.errors import ToolFailed

SHOWN_MATCHES = 12
_LINE_END = rb"(?:\r\n|(?<!\r)\n)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """`first_line` to `last_line` (from 1) are the lines that the new text now stands in."""

    data: bytes
    first_line: int
    last_line: int


def replace_once(data: bytes, old: str, new: str) -> Edited:
    """Raises `ToolFailed` unless `old` occurs exactly once, overlapping occurrences counted."""
    wanted, wished = _lines(old), _lines(new)
    if old == "":
        raise ToolFailed("`old` is empty. Quote the text to replace; to add text, quote a line next to the place and repeat it in `new`.")
    if wanted == wished:
        raise ToolFailed("`old` and `new` are the same: nothing to do.")
    pattern = re.compile(b"(?=(" + _LINE_END.join(re.escape(line) for line in wanted) + b"))")
    spans = [match.span(1) for match in pattern.finditer(data)]
    if not spans:
        raise ToolFailed(_not_found(data, wanted))
    if len(spans) > 1:
        lines = ", ".join(str(_line_at(data, start)) for start, _ in spans[:SHOWN_MATCHES])
        more = ", …" if len(spans) > SHOWN_MATCHES else ""
        raise ToolFailed(f"`old` occurs {len(spans)} times, at lines {lines}{more}. Quote more lines around the one you mean.")
    start, end = spans[0]
    text = _line_end(data, start, end).join(wished)
    first_line = _line_at(data, start)
    return Edited(data=data[:start] + text + data[end:], first_line=first_line, last_line=first_line + len(wished) - 1)


def _lines(text: str) -> list[bytes]:
    return [line.encode() for line in text.replace("\r\n", "\n").split("\n")]


def _line_end(data: bytes, start: int, end: int) -> bytes:
    """The kind of line end inside the replaced text, else of the line it ends in, else of the file's first line."""
    for low, high in ((start, end), (end, len(data)), (0, start)):
        at = data.find(b"\n", low, high)
        if at >= 0:
            return b"\r\n" if data[at - 1 : at] == b"\r" else b"\n"
    return b"\n"


def _line_at(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _not_found(data: bytes, wanted: list[bytes]) -> str:
    """Says where the text nearly occurs, when it does: with other white space, or beginning the same way."""
    lines = data.split(b"\n")
    bare = [line.strip() for line in lines]
    sought = [line.strip() for line in wanted]
    while len(sought) > 1 and not sought[-1]:
        sought.pop()
    same = [at + 1 for at in range(len(bare)) if bare[at : at + len(sought)] == sought] if any(sought) else []
    if same:
        return f"`old` does not occur. At line {same[0]} it does but for white space: read that part again and quote it exactly."
    first = next((line for line in sought if len(line) > 3), b"")
    begins = [at + 1 for at, line in enumerate(bare) if first and first in line][:SHOWN_MATCHES]
    if begins:
        shown = ", ".join(str(line) for line in begins)
        return f"`old` does not occur. Its line {first[:80].decode(errors='replace')!r} is at {shown}, but what stands around it differs."
    return "`old` does not occur in the file, nor does its first line. Read the file again."
