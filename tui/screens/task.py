"""One agent's screen: the task pane on all of the room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from tui.desk import Desk, DetailArrived, LookFailed
from tui.screens.base import HELP_KEY, TASK_KEYS, VERDICT_ELSEWHERE, Command, Open, StationScreen
from tui.widgets.task_pane import TaskPane


class TaskScreen(StationScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "review", "Review"),
        Binding("z", "toggle_folds", "Unfold"),
        Binding("q,escape", "app.go_back", "Back", key_display="q"),
        HELP_KEY,
        *TASK_KEYS,
        *VERDICT_ELSEWHERE,
    ]

    def __init__(self, desk: Desk, task: str) -> None:
        super().__init__(desk)
        self._shown = task

    def body(self) -> Iterable[Widget]:
        yield TaskPane(self.desk, id="agent")

    def on_mount(self) -> None:
        super().on_mount()
        self.pane.pager.focus()

    def on_screen_resume(self) -> None:
        # What came while another screen was up went to that one.
        self.pane.ask_again()

    @property
    def pane(self) -> TaskPane:
        return self.query_one(TaskPane)

    @property
    def selected(self) -> str | None:
        return self._shown

    def show_body(self) -> None:
        self.pane.show(self._shown, self.model, self.now)

    def detail_arrived(self, message: DetailArrived) -> None:
        self.pane.detail_arrived(message)

    def look_failed(self, message: LookFailed) -> None:
        self.pane.look_failed(message)

    def action_review(self) -> None:
        self.post_message(Open("review", self._shown))

    def action_toggle_folds(self) -> None:
        self.pane.toggle_folds()

    def commands(self) -> Iterable[Command]:
        yield Command("Review the task", "Its diff and checks; approve, reject, merge", self.action_review)
        yield Command("Fold or unfold", "Long results, thinking and outputs", self.action_toggle_folds)
        yield from super().commands()
