"""What a screen shows before it has colours: lines of spans, each with a role that the style sheet gives a look.

A line is plain data, so everything up to the widgets is tested without a terminal, and text from outside is never parsed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

from rich.cells import cell_len, chop_cells, set_cell_size

Role = Literal[
    "plain",
    "dim",
    "strong",
    "title",
    "good",
    "bad",
    "warn",
    "busy",
    "accent",
    "thinking",
    "added",
    "removed",
    "hunk",
    "gutter",
    "chart",
    "alarm",
    "badge",
    "pick",
]
ROLES: tuple[Role, ...] = get_args(Role)


class Span(NamedTuple):
    text: str
    role: Role = "plain"


Line: TypeAlias = tuple[Span, ...]
BLANK: Line = ()
_WORD = 20


def line(*parts: Span | str) -> Line:
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def text_of(spans: Line) -> str:
    return "".join(span.text for span in spans)


def width_of(spans: Line) -> int:
    return sum(cell_len(span.text) for span in spans)


def fit(text: str, width: int, *, right: bool = False) -> str:
    """`text` in exactly `width` cells: padded, or cut with an ellipsis."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    padding = " " * (width - length)
    return padding + text if right else text + padding


def crop(spans: Line, width: int) -> Line:
    """At most `width` cells of a line; the last shown cell is an ellipsis when something was cut."""
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    left = width
    for span in spans:
        length = cell_len(span.text)
        if length >= left:
            kept.append(Span(fit(span.text, left) if length > left else set_cell_size(span.text, left - 1) + "…", span.role))
            break
        kept.append(span)
        left -= length
    return tuple(kept)


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and, at the other end, `right`; the left part gives way when both do not fit."""
    room = width - width_of(right)
    if room < 8:
        return crop(left, width)
    shown = crop(left, room - 1)
    return (*shown, Span(" " * (room - width_of(shown))), *right)


def wrap(spans: Line, width: int, indent: int = 0) -> list[Line]:
    """The line in rows of at most `width` cells, every character kept; rows after the first start with `indent` spaces, or fewer.

    A space near the edge is a better place than the middle of a word; no character is lost or moved.
    """
    if width_of(spans) <= width:
        return [spans]
    if width < 2:
        return [BLANK]
    indent = min(indent, width - 2)
    rows: list[Line] = []
    row: list[Span] = []
    left = width
    for text, role in spans:
        while text:
            head = _head(text, left)
            if not head:
                rows.append(tuple(row))
                row, left = [Span(" " * indent)], width - indent
                continue
            row.append(Span(head, role))
            text = text[len(head) :]
            left = 0 if text else left - cell_len(head)
    rows.append(tuple(row))
    return rows


def _head(text: str, width: int) -> str:
    """As many characters of `text` as fit in `width` cells."""
    if width <= 0:
        return ""
    if text.isascii():
        return _at_word(text[:width], text)
    head = text[:width]
    if cell_len(head) > width:
        head = chop_cells(head, width)[0]
    if cell_len(head) > width:
        return ""
    end = len(head)
    while end < len(text) and cell_len(text[end]) == 0:
        end += 1
    return _at_word(text[:end], text)


def _at_word(head: str, text: str) -> str:
    """`head`, or less of it when the row would end inside a word that begins near its end."""
    if len(head) == len(text) or text[len(head)] == " ":
        return head
    space = head.rfind(" ", max(1, len(head) - _WORD))
    return head[: space + 1] if space > 0 else head
