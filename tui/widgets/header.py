"""The two bars on top of every screen: how fast and how many, and what must not be missed."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from tui.header import TALL, banner_lines, header_lines
from tui.line import Line
from tui.state import Model, Only
from tui.widgets.paint import strip_of


class Bar(Widget):
    """A few lines that are drawn again only when they say something else."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._rows: list[Line] = []

    @property
    def rows(self) -> list[Line]:
        return self._rows

    def put(self, rows: list[Line]) -> None:
        if rows != self._rows:
            self._rows = rows
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return strip_of(self, self._rows[y] if y < len(self._rows) else (), self.size.width)


class Header(Bar):
    """Large numerals where the screen is high enough, one line of facts where it is not."""

    def show(self, model: Model, now: float, *, tall: bool, only: Only | None = None) -> None:
        self.styles.height = TALL if tall else 2
        self.put(header_lines(model, now, width=self.size.width or self.container_size.width, tall=tall, only=only))


class Banner(Bar):
    """Warnings of the station, and its silence. Takes no room when there is neither."""

    def show(self, model: Model) -> None:
        rows = banner_lines(model)
        self.display = bool(rows)
        self.styles.height = len(rows)
        self.put(rows)
