"""What a terminal cannot or shall not show is taken out of the finished lines: one place for all widgets, Textual's own included."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from tui.marks import ASCII

_DEFAULTS = Style.from_color(RichColor.default(), RichColor.default())


class NoColours(LineFilter):
    """NO_COLOR: bold, underline and reverse stay, colours go. (Textual's own filter keeps shades of grey.)"""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, None if style is None else style + _DEFAULTS, control) for text, style, control in segments]


class AsciiOnly(LineFilter):
    """A terminal without UTF-8: our glyphs become their likes, other characters '?', and every cell stays where it is."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment(ascii_of(segment.text), segment.style, segment.control) for segment in segments
        ]


def ascii_of(text: str) -> str:
    return "".join(c if c.isascii() else ASCII.get(c, "?" * cell_len(c)) for c in text)


def speaks_utf8(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal is to be sent UTF-8, by the locale that the user set.

    Python itself sets LC_CTYPE=C.UTF-8 where LANG is C or names a locale that is not installed: then LANG is what the user said.
    No locale at all is the rule in containers, whose terminals speak UTF-8 nowadays.
    """
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = environ.get(name, "")
        if not value or (name == "LC_CTYPE" and value == "C.UTF-8" and environ.get("LANG")):
            continue
        return "utf-8" in value.lower() or "utf8" in value.lower()
    return True
