"""The list of tasks, one row each."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message

from tui.columns import Placed, place, row_line, title_line
from tui.line import Line
from tui.state import Model, Selection, listed, next_in
from tui.widgets.lister import Lister


class FleetList(Lister):
    """The cursor stays on its task, wherever the order takes it."""

    @dataclass
    class Resized(Message):
        """The columns stand elsewhere now."""

        titles: Line

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._model = Model()
        self._now = 0.0
        self._ids: list[str] = []
        self._placed: list[Placed] = place(80)

    @property
    def chosen(self) -> str | None:
        """The task under the cursor; None when nothing is listed."""
        return self._ids[self.cursor] if self.cursor < len(self._ids) else None

    @property
    def ids(self) -> list[str]:
        return self._ids

    def show(self, model: Model, selection: Selection, now: float) -> int:
        """How many rows had to be drawn again."""
        chosen, self._model, self._now = self.chosen, model, now
        self._ids = listed(model, selection, now)
        cursor = self._ids.index(chosen) if chosen in self._ids else min(self.cursor, max(0, len(self._ids) - 1))
        return self.update(len(self._ids), cursor)

    def go_to(self, task: str | None) -> bool:
        """Put the cursor on a task. False when it is not listed."""
        if task not in self._ids:
            return False
        self.move_to(self._ids.index(task))
        return True

    def go_to_next(self, wanted: list[str]) -> bool:
        """On to the one after the cursor's task in `wanted`, to its first when the cursor stands elsewhere. False when none is listed."""
        return self.go_to(next_in(wanted, self.chosen, set(self._ids)))

    def row(self, index: int, chosen: bool) -> Line:
        return row_line(self._model.tasks[self._ids[index]], self._placed, self._now, chosen=chosen)

    def on_resize(self, _event: events.Resize) -> None:
        self._placed = place(self.scrollable_content_region.width)
        self.post_message(self.Resized(title_line(self._placed)))
        super().on_resize(_event)
