"""Text for the model: bounded, and free of what only a terminal understands."""

from __future__ import annotations

import re

OUTPUT_CHARACTERS = 16_000
"""About 4,000 tokens."""
HEAD_SHARE = 0.4
"""The end of an output matters more than its beginning: that is where errors are."""

_ESCAPE = re.compile(
    r"""\x1b\[[0-?]*[ -/]*[@-~]              # CSI: colours, cursor, modes
      | \x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?   # OSC: titles, links
      | \x1b[PX^_].*?(?:\x1b\\|\Z)           # DCS, SOS, PM, APC
      | \x1b[ -/]*[0-~]                      # two-character escapes and character sets
      | \x1b\Z""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def cleaned(data: bytes) -> str:
    """Command output as plain text: invalid bytes replaced, escapes and control characters removed, a line that a carriage return
    overwrote gone but for its last state.
    """
    text = data.decode(errors="replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    return _CONTROL.sub("", text)


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


def bounded(text: str, *, limit_characters: int = OUTPUT_CHARACTERS, dropped_bytes: int = 0) -> str:
    """Head and tail within the limit, cut at line ends where lines are short enough, and what was left out said between them.

    `dropped_bytes` were lost before, somewhere in the middle half of `text`.
    """
    if len(text) <= limit_characters and not dropped_bytes:
        return text
    head_characters = min(int(limit_characters * HEAD_SHARE), len(text) // 4 if dropped_bytes else limit_characters)
    tail_characters = min(limit_characters - head_characters, len(text) // 4 if dropped_bytes else limit_characters)
    head = text[:head_characters]
    tail = text[len(text) - tail_characters :]
    if "\n" in head[head_characters // 2 :]:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail[: tail_characters // 2]:
        tail = tail[tail.index("\n") + 1 :]
    middle = text[len(head) : len(text) - len(tail)]
    lines = f"{middle.count(chr(10))} lines, " if not dropped_bytes else ""
    left_out_bytes = len(middle.encode(errors="replace")) + dropped_bytes
    return f"{head.rstrip(chr(10))}\n[… {lines}{left_out_bytes:,} bytes left out …]\n{tail}"


def one_line(text: str, *, limit_characters: int) -> str:
    line = _CONTROL.sub("", " ".join(text.split()))
    return line if len(line) <= limit_characters else f"{line[: limit_characters - 1]}…"
