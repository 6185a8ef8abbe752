"""From lines of spans to what Textual draws: roles get their looks from the style sheet (`.role--…`), nothing is parsed."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tui.line import ROLES, Line, Role

ROLE_CLASSES = {f"role--{role}" for role in ROLES}
"""The component classes of every screen that has widgets of ours."""
_GROUNDED: frozenset[Role] = frozenset({"added", "removed", "alarm", "badge", "pick"})


def strip_of(widget: Widget, spans: Line, width: int, *, under: Role | None = None) -> Strip:
    """A line in exactly `width` cells; `under` names the role whose background lies under all of it (a chosen row)."""
    plain = widget.rich_style
    segments = [Segment(span.text, _look(widget, span.role, plain)) for span in spans if span.text]
    strip = Strip(segments).adjust_cell_length(width, _look(widget, spans[-1].role, plain) if _fills(spans) else plain)
    if under is None:
        return strip
    look = _look(widget, under, plain)
    return Strip(Segment.apply_style(strip, post_style=Style(bgcolor=look.bgcolor, reverse=look.reverse)), width)


def _fills(spans: Line) -> bool:
    """Whether the last span's background goes on to the edge: a changed line is a bar, not a ragged patch."""
    return bool(spans) and spans[-1].role in {"added", "removed", "alarm"}


def _look(widget: Widget, role: Role, own: Style) -> Style:
    """The screen knows the looks, once for all of its widgets; a role without a ground of its own stands on the widget's, `own`."""
    if role == "plain":
        return own
    look = widget.screen.get_component_rich_style(f"role--{role}")
    return look if role in _GROUNDED else look + Style(bgcolor=own.bgcolor)
