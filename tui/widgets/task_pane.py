"""One task, read from top to bottom: its facts, notes, checks and trajectory, with what it writes at this moment."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from orchestrator.task import ACTIVE
from orchestrator.views import TaskDetail, TaskRow
from tui.desk import Desk, DetailArrived, LookFailed
from tui.foreign import one_line
from tui.line import BLANK, Line, Span, line
from tui.state import Model, state_age_s
from tui.task_lines import detail_lines, follows_tail, headline, numbers_line
from tui.trajectory_lines import Entry
from tui.widgets.header import Bar
from tui.widgets.pager import Pager

LIVE_S = 0.5
TRAJECTORY_S = 1.0
ANSWER_S = 10.0


class TaskPane(Vertical):
    """Asks for what it shows: at once when the task has changed, twice a second while an agent is at work on it."""

    def __init__(self, desk: Desk, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._desk = desk
        self._shown: str | None = None
        self._row: TaskRow | None = None
        self._detail: TaskDetail | None = None
        self._entries: list[Entry] | None = None
        self._asked_at: float | None = None
        self._trajectory_at: float | None = None
        self._asked_seq: int | None = None
        self._seen_seq: int | None = None
        self._unfolded = False
        self._anew = True

    def compose(self) -> ComposeResult:
        yield Bar(id="headline")
        yield Pager(id="document")

    @property
    def pager(self) -> Pager:
        return self.query_one(Pager)

    def show(self, task: str | None, model: Model, now: float) -> None:
        if task != self._shown:
            self._turn_to(task)
        self._row = model.row(task)
        seen = model.tasks.get(task) if task is not None else None
        if seen is None:
            self.query_one("#headline", Bar).put([line(Span(" no task chosen", "dim"))])
            return
        self.query_one("#headline", Bar).put(
            [(Span(" "), *headline(seen.row, state_age_s(seen, now))), (Span(" "), *numbers_line(seen.row))]
        )
        if model.lost is None:
            self._ask(seen.row, now)

    def ask_again(self) -> None:
        """An answer may have been missed: do not wait for it."""
        self._asked_at = self._trajectory_at = None

    def detail_arrived(self, message: DetailArrived) -> None:
        if message.task != self._shown:
            return
        self._detail = message.detail
        if message.entries is not None or message.detail.row.attempt == 0:
            self._entries = message.entries
            self._seen_seq = self._asked_seq
        self._draw()

    def look_failed(self, message: LookFailed) -> None:
        if message.task == self._shown and message.what == "detail" and self._detail is None:
            trouble = message.trouble
            self.pager.show([line(Span(f"✘ {one_line(trouble.message)}", "bad")), line(Span(one_line(trouble.hint), "dim"))])

    def toggle_folds(self) -> None:
        self._unfolded = not self._unfolded
        self._draw()

    def _turn_to(self, task: str | None) -> None:
        self._shown, self._detail, self._entries = task, None, None
        self._asked_at = self._trajectory_at = self._asked_seq = self._seen_seq = None
        self._anew = True
        self.pager.show([line(Span("being read …", "dim"))] if task is not None else [], follow=False, anew=True)

    def _ask(self, row: TaskRow, now: float) -> None:
        behind = self._seen_seq != row.changed_seq
        live = row.state in ACTIVE
        if self._asked_at is not None:
            waited = now - self._asked_at
            unanswered = behind and self._asked_seq == row.changed_seq and waited < ANSWER_S
            if waited < LIVE_S or (not live and (not behind or unanswered)):
                return
        trajectory = behind and (self._trajectory_at is None or now - self._trajectory_at >= TRAJECTORY_S)
        if not (live or trajectory):
            return
        self._asked_at = now
        if trajectory:
            self._trajectory_at, self._asked_seq = now, row.changed_seq
        assert self._shown is not None
        self._desk.look_up(self._shown, trajectory=trajectory)

    def _draw(self) -> None:
        if self._detail is None:
            return
        lines: list[Line] = detail_lines(self._detail, self._entries, unfolded=self._unfolded)
        self.pager.show([*lines, BLANK], follow=follows_tail(self._detail.row), anew=self._anew)
        # The place to begin reading is only known once the trajectory is there.
        self._anew = self._anew and self._entries is None and self._detail.row.attempt > 0
