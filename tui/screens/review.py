"""The review of one task: what is in the way, its checks, its diff, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from orchestrator.task import ENDED
from orchestrator.views import DiffDocument, TaskDetail, TaskRow
from tui.desk import CommandDone, Desk, DetailArrived, DiffArrived, LookFailed
from tui.foreign import one_line
from tui.line import Line, Span, line, spread
from tui.review_lines import build, no_diff_line, summary, verdict_lines
from tui.screens.base import HELP_KEY, TASK_KEYS, Command, Open, StationScreen
from tui.state import Selection, group, listed, next_in, state_age_s
from tui.task_lines import headline
from tui.verbs import in_keys
from tui.widgets.header import Bar
from tui.widgets.lister import Lister
from tui.widgets.pager import Pager
from tui.widgets.sections import SectionList

SIDE_FROM = 100
LIST_ROWS = 5


class ReviewScreen(StationScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve"),
        Binding("x", "reject", "Reject"),
        Binding("m", "merge", "Merge"),
        Binding("n", "next(1)", "Next"),
        Binding("p", "next(-1)", "Prev"),
        Binding("q,escape", "app.go_back", "Back", key_display="q"),
        HELP_KEY,
        Binding("J,right_square_bracket", "section(1)", "Next file", key_display="J"),
        Binding("K,left_square_bracket", "section(-1)", "Previous file", show=False),
        Binding("z", "toggle_folds", "Unfold", show=False),
        Binding("t", "trajectory", "Trajectory"),
        *TASK_KEYS,
    ]

    def __init__(self, desk: Desk, task: str) -> None:
        super().__init__(desk)
        self._shown = task
        self._detail: TaskDetail | None = None
        self._document: DiffDocument | None = None
        self._trouble: list[Line] = []
        self._asked_seq: int | None = None
        self._unfolded = False
        self._anew = True

    def body(self) -> Iterable[Widget]:
        yield Bar(id="headline")
        yield Bar(id="verdict")
        with Horizontal(id="review"):
            yield SectionList(id="sections")
            yield Pager(id="document")

    def on_mount(self) -> None:
        super().on_mount()
        self.pager.focus()

    @property
    def pager(self) -> Pager:
        return self.query_one(Pager)

    @property
    def sections(self) -> SectionList:
        return self.query_one(SectionList)

    @property
    def selected(self) -> str | None:
        return self._shown

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < SIDE_FROM, "-narrow")
        super().on_resize(event)

    def show_body(self) -> None:
        seen = self.model.tasks.get(self._shown)
        row = seen.row if seen else None
        head = headline(row, state_age_s(seen, self.now)) if seen and row else line(Span(one_line(self._shown), "strong"))
        to_review = self._to_review()
        place = f"  {to_review.index(self._shown) + 1} of {len(to_review)} to review" if self._shown in to_review else ""
        self.query_one("#headline", Bar).put([spread((Span(" "), *head), line(Span(place, "gutter")), self.size.width - 1)])
        if row is not None and self._detail is not None and self._detail.row.attempt < row.attempt:
            # Nothing of an attempt that is over may stand there as if it were the new one's.
            self._detail = self._document = None
            self._draw()
        changed = row.changed_seq if row else 0
        if self.model.lost is None and self._asked_seq != changed:
            self._asked_seq = changed
            self._ask(row)

    def _ask(self, row: TaskRow | None) -> None:
        self.desk.look_up(self._shown, trajectory=False)
        if row is None or row.snapshot_commit is not None:
            self.desk.look_at_diff(self._shown, remember=row is not None and row.state == "verified")
        else:
            self._document, self._trouble = None, [no_diff_line(row)]
            self._draw()

    def detail_arrived(self, message: DetailArrived) -> None:
        if message.task == self._shown:
            self._detail = message.detail
            self._draw()

    def diff_arrived(self, message: DiffArrived) -> None:
        if message.task == self._shown:
            self._document, self._trouble = message.document, []
            self._draw()

    def look_failed(self, message: LookFailed) -> None:
        if message.task != self._shown:
            return
        row = self.model.row(self._shown)
        if message.what == "diff" and row is not None and row.state not in ENDED and self.model.lost is None:
            # A new attempt began between the row and the question.
            self._document, self._trouble = None, [no_diff_line(row)]
        else:
            trouble = message.trouble
            self._trouble = [line(Span(f"✘ {one_line(trouble.message)}", "bad"), Span(f"  {in_keys(one_line(trouble.hint))}", "dim"))]
        self._draw()

    def on_screen_resume(self) -> None:
        # What came while another screen was up went to that one.
        self._asked_seq = None

    def command_done(self, message: CommandDone) -> None:
        """Whatever a command changed is to be seen at once, before the next snapshot tells of it."""
        if message.task == self._shown:
            self._asked_seq = None

    def _draw(self) -> None:
        top = [*self._trouble]
        if self._document is not None:
            top = [summary(self._document), *verdict_lines(self._document, self.model.row(self._shown)), *self._trouble]
        bar = self.query_one("#verdict", Bar)
        bar.styles.height = len(top)
        bar.put([(Span(" "), *row) for row in top])
        built = build(self._document, self._detail, unfolded=self._unfolded)
        self.pager.show(built.lines, anew=self._anew)
        self.sections.show(built.sections, min(self.sections.cursor, max(0, len(built.sections) - 1)))
        if self.has_class("-narrow"):
            self.sections.styles.height = min(LIST_ROWS, max(1, len(built.sections)))
        else:
            self.sections.styles.height = "1fr"
        self._anew = self._anew and (self._document is None or self._detail is None)

    @on(Lister.Moved)
    @on(Lister.Opened)
    def jump(self, message: Lister.Moved) -> None:
        if message.index < len(self.sections.sections):
            self.pager.jump(self.sections.sections[message.index].at)

    def _all(self) -> list[str]:
        """In an order that a verdict does not change, so that next is the next and not the first again."""
        return listed(self.model, Selection(order="submitted"), self.now)

    def _to_review(self) -> list[str]:
        return [task for task in self._all() if group(self.model.tasks[task].row) == "review"]

    def _turn_to(self, task: str) -> None:
        self._shown = task
        self._detail = self._document = self._asked_seq = None
        self._trouble, self._anew = [], True
        self.sections.move_to(0)
        self._draw()
        self.show_again()

    def action_next(self, step: int) -> None:
        following = next_in(self._all(), self._shown, set(self._to_review()) - {self._shown}, step=step)
        if following is None:
            self.notify("nothing else is to be reviewed", markup=False)
        else:
            self._turn_to(following)

    def action_section(self, step: int) -> None:
        self.sections.move_to(self.sections.cursor + step)

    def action_approve(self) -> None:
        if (task := self.chosen_for("approve")) is not None:
            self.desk.command("approve", task)

    def action_reject(self) -> None:
        self.ask_comment(
            "reject", "Reject", "With a comment it goes back to the agent as a new attempt; without one it is rejected for good."
        )

    def action_merge(self) -> None:
        if (task := self.chosen_for("merge")) is not None:
            self.notify(f"merging {one_line(task, limit=60)} …", markup=False)
            self.desk.command("merge", task)

    def action_trajectory(self) -> None:
        self.post_message(Open("task", self._shown))

    def action_toggle_folds(self) -> None:
        self._unfolded = not self._unfolded
        self._draw()

    def commands(self) -> Iterable[Command]:
        yield Command("Approve the task", "Its snapshot is good; merge lands it", self.action_approve)
        yield Command("Reject the task", "With a comment for a new attempt, or for good", self.action_reject)
        yield Command("Merge the task", "Squash it onto its branch", self.action_merge)
        yield Command("Next to review", "", lambda: self.action_next(1))
        yield Command("Previous to review", "", lambda: self.action_next(-1))
        yield Command("Read the trajectory", "How the agent came to this", self.action_trajectory)
        yield from super().commands()
