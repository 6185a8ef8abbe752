"""A list with a cursor: rows are drawn when they come in sight and again only when what they show has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.line import Line, crop
from tui.widgets.pager import SCROLL_KEYS
from tui.widgets.paint import strip_of


class Lister(ScrollView, can_focus=True):
    """Rows come from `row(index, chosen)`; the owner says with `update` how many there are."""

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_KEYS

    @dataclass
    class Moved(Message):
        """The cursor stands on another row."""

        lister: Lister
        index: int

        @property
        def control(self) -> Lister:
            return self.lister

    @dataclass
    class Opened(Moved):
        """A row was clicked a second time."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._count = 0
        self._cursor = 0
        self._drawn: dict[int, Line] = {}

    def row(self, index: int, chosen: bool) -> Line:
        """The line of a row. Subclasses give it."""
        raise NotImplementedError

    @property
    def cursor(self) -> int:
        return self._cursor

    def update(self, count: int, cursor: int) -> int:
        """There are `count` rows now and the cursor is at `cursor`. How many rows in sight have to be drawn again."""
        if count != self._count:
            self._count = count
            self._drawn.clear()
            self.virtual_size = Size(self.scrollable_content_region.width, count)
            self.refresh()
        moved = self._place(cursor)
        if moved:
            self._reveal()
        top = self.scroll_offset.y
        changed = [y for y in range(top, min(top + self.size.height, count)) if self._drawn.get(y) != self._line(y)]
        for y in changed:
            self.refresh_line(y)
        return len(changed)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row and tell."""
        if self._place(index):
            self._reveal()
            self.post_message(self.Moved(self, self._cursor))

    def _place(self, index: int) -> bool:
        index = max(0, min(index, self._count - 1))
        if index == self._cursor:
            return False
        old, self._cursor = self._cursor, index
        self.refresh_line(old)
        self.refresh_line(index)
        return True

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False, force=True)

    def _line(self, index: int) -> Line:
        return crop(self.row(index, index == self._cursor), self.scrollable_content_region.width)

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if index >= self._count:
            return strip_of(self, (), width)
        shown = self._drawn[index] = self._line(index)
        return strip_of(self, shown, width, under="pick" if index == self._cursor else None)

    def on_resize(self, _event: events.Resize) -> None:
        self._drawn.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, self._count)
        self.call_after_refresh(self._reveal)

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if not 0 <= index < self._count:
            return
        if index == self._cursor:
            self.post_message(self.Opened(self, index))
        else:
            self.move_to(index)

    def action_move(self, rows: int) -> None:
        self.move_to(self._cursor + rows)

    def action_page(self, pages: float) -> None:
        self.move_to(self._cursor + round(pages * max(1, self.size.height - 1)))

    def action_to_top(self) -> None:
        self.move_to(0)

    def action_to_bottom(self) -> None:
        self.move_to(self._count - 1)
