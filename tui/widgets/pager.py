"""A document of lines to scroll through: wrapped to the width, only what is in sight is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.line import Line, text_of, wrap
from tui.widgets.paint import strip_of

SCROLL_KEYS: list[BindingType] = [
    Binding("j,down", "move(1)", "Down", show=False),
    Binding("k,up", "move(-1)", "Up", show=False),
    Binding("ctrl+d", "page(0.5)", "Half a page down", show=False),
    Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False),
    Binding("pagedown,space,ctrl+f", "page(1)", "Page down", show=False),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
    Binding("g,home", "to_top", "Top", show=False),
    Binding("G,end", "to_bottom", "Bottom", show=False),
]


def _indent(spans: Line) -> int:
    if spans and spans[0].role == "gutter":
        return len(spans[0].text) + 2
    text = text_of(spans)
    return len(text) - len(text.lstrip(" ")) + 2


class Pager(ScrollView, can_focus=True):
    """With `follow` it stays at the end as lines come in, until somebody scrolls up.

    Rows that go on with a line begin `hanging` cells in; None: a little more than the line itself.
    """

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_KEYS

    def __init__(self, *, id: str | None = None, hanging: int | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._rows: list[Line] = []
        self._row_of: list[int] = []
        self._hanging = hanging
        self._follow = False

    def show(self, lines: Sequence[Line], *, follow: bool | None = None, anew: bool = False) -> None:
        """Replace the lines. `anew`: another document, so go to its beginning, or with `follow` to its end."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        if follow is not None:
            self._follow = follow
        if not anew and lines == self._lines:
            return
        self._lines = lines
        self._lay_out()
        if anew and not self._follow:
            self.scroll_to(y=0, animate=False)
        elif self._follow and (anew or at_end):
            self.call_after_refresh(self.scroll_end, animate=False)

    @property
    def lines(self) -> Sequence[Line]:
        return self._lines

    def jump(self, line_index: int) -> None:
        """Bring a line to the top."""
        if 0 <= line_index < len(self._row_of):
            self.scroll_to(y=self._row_of[line_index], animate=False)

    def _lay_out(self) -> None:
        width = max(1, self.scrollable_content_region.width)
        self._rows, self._row_of = [], []
        for spans in self._lines:
            self._row_of.append(len(self._rows))
            self._rows += wrap(spans, width, _indent(spans) if self._hanging is None else self._hanging)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        return strip_of(self, self._rows[row] if row < len(self._rows) else (), width)

    def action_move(self, rows: int) -> None:
        self.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: float) -> None:
        self.scroll_relative(y=round(pages * max(1, self.size.height - 1)), animate=False)

    def action_to_top(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_to_bottom(self) -> None:
        self.scroll_end(animate=False)
