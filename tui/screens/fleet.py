"""The first screen: every task in a row, and beside the list, where there is room, the chosen one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from orchestrator.task import REVIEWABLE
from tui.columns import whole_line
from tui.desk import Desk, DetailArrived, LookFailed
from tui.foreign import visible
from tui.line import Span, crop, line
from tui.screens.base import HELP_KEY, TASK_KEYS, VERDICT_ELSEWHERE, Command, Open, StationScreen
from tui.state import ONLY, ORDERS, Only, Selection, urgent
from tui.widgets.fleet import FleetList
from tui.widgets.header import Bar
from tui.widgets.lister import Lister
from tui.widgets.task_pane import TaskPane

PANE_FROM = 160


class FleetScreen(StationScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_task", "Open", key_display="enter"),
        Binding("v", "review", "Review"),
        Binding("exclamation_mark", "next_human", "Needs you", key_display="!"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("q", "app.leave", "Quit"),
        HELP_KEY,
        Binding("o", "order", "Sort"),
        *(Binding(str(i), f"only('{only}')", only, show=False) for i, only in enumerate(ONLY)),
        Binding("escape", "clear", "Clear the filter", show=False),
        Binding("z", "toggle_folds", "Unfold", show=False),
        *TASK_KEYS,
        *VERDICT_ELSEWHERE,
    ]

    def __init__(self, desk: Desk, task: str | None = None) -> None:
        super().__init__(desk)
        self.selection = Selection()
        self._wanted = task

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="fleet"):
            with Vertical(id="fleet-list"):
                yield Bar(id="titles")
                yield FleetList(id="tasks")
                yield Bar(id="reason")
                yield Bar(id="listing")
                yield Input(id="filter", placeholder="words of id, title, kind or state", compact=True)
            yield TaskPane(self.desk, id="pane")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#filter").display = False
        self.tasks.focus()

    @property
    def tasks(self) -> FleetList:
        return self.query_one(FleetList)

    @property
    def pane(self) -> TaskPane:
        return self.query_one(TaskPane)

    @property
    def selected(self) -> str | None:
        return self.tasks.chosen

    @property
    def filter_shown(self) -> Only | None:
        return self.selection.only

    def show_body(self) -> None:
        self.tasks.show(self.model, self.selection, self.now)
        if self._wanted is not None and self.tasks.go_to(self._wanted):
            self._open_wanted(self._wanted)
        self._show_listing()
        self._show_chosen()

    def _show_chosen(self) -> None:
        """What there is to say of the chosen task beyond its row: beside the list where there is room, else below it."""
        if self.pane.display:
            self.pane.show(self.selected, self.model, self.now)
        row = self.model.row(self.selected)
        self.query_one("#reason", Bar).put([crop(whole_line(row), self.size.width)] if row is not None else [])

    def _open_wanted(self, task: str) -> None:
        """The task that the dashboard was opened for: its review when it is up to a person, else its own screen."""
        self._wanted = None
        self.post_message(Open("review" if self.model.tasks[task].row.state in REVIEWABLE else "task", task))

    def _show_listing(self) -> None:
        """A line that says what is not as usual: a filter, an order, an empty list."""
        shown, total = len(self.tasks.ids), len(self.model.tasks)
        parts: list[str] = []
        if self.model.received_at is None:
            parts.append("waiting for the station's first answer" if self.model.lost is None else "nothing known yet")
        elif total == 0:
            parts.append("no tasks yet: add some with `stationmaster add`")
        elif shown < total:
            text = f" that match '{visible(self.selection.text, limit=60)}'" if self.selection.text else ""
            parts.append(f"{shown} of {total} tasks{text}, esc shows all")
        if self.selection.order != "state":
            parts.append(f"sorted by {self.selection.order}")
        bar = self.query_one("#listing", Bar)
        bar.display = bool(parts)
        bar.put([line(Span(f" {'   '.join(parts)}", "warn"))])

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= PANE_FROM, "-wide")
        self.pane.display = event.size.width >= PANE_FROM
        super().on_resize(event)

    def detail_arrived(self, message: DetailArrived) -> None:
        self.pane.detail_arrived(message)

    def look_failed(self, message: LookFailed) -> None:
        self.pane.look_failed(message)

    @on(FleetList.Resized)
    def place_titles(self, message: FleetList.Resized) -> None:
        self.query_one("#titles", Bar).put([message.titles])

    @on(Lister.Moved)
    def follow_cursor(self) -> None:
        self._show_chosen()
        self.offer()

    @on(Lister.Opened)
    def open_clicked(self) -> None:
        self.action_open_task()

    @on(Input.Changed, "#filter")
    def narrow(self, message: Input.Changed) -> None:
        self._select(replace(self.selection, text=message.value))

    @on(Input.Submitted, "#filter")
    def narrowed(self) -> None:
        self.query_one("#filter").display = False
        self.tasks.focus()

    def _select(self, selection: Selection) -> None:
        self.selection = selection
        self.show_again()

    def action_open_task(self) -> None:
        if self.selected is not None:
            self.post_message(Open("task", self.selected))

    def action_review(self) -> None:
        if self.selected is not None:
            self.post_message(Open("review", self.selected))

    def action_next_human(self) -> None:
        """To the most urgent of the tasks that need a person, and from there through them all, round and round.

        When the filter hides all of them, it goes.
        """
        wanted = urgent(self.model, self.now)
        if not wanted:
            self.notify("nothing needs you now", markup=False)
        elif not self.tasks.go_to_next(wanted):
            self.action_clear()
            self.tasks.go_to_next(wanted)

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        box.focus()

    def action_order(self) -> None:
        order = ORDERS[(ORDERS.index(self.selection.order) + 1) % len(ORDERS)]
        self._select(replace(self.selection, order=order))

    def action_only(self, only: Only) -> None:
        self._select(replace(self.selection, only="all" if only == self.selection.only else only))

    def action_clear(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = False
        box.value = ""
        self.tasks.focus()
        self._select(replace(self.selection, text="", only="all"))

    def action_toggle_folds(self) -> None:
        self.pane.toggle_folds()

    def commands(self) -> Iterable[Command]:
        yield Command("Open the task", "Its trajectory, live text, checks and notes", self.action_open_task)
        yield Command("Review the task", "Its diff and checks; approve, reject, merge", self.action_review)
        yield Command("Next that needs you", "A failed task, or a diff to review", self.action_next_human)
        yield from super().commands()
        yield Command("Filter the list", "By words of id, title, kind or state", self.action_filter)
        yield Command("Sort the list differently", "State, submission, id, tokens, tok/s, diff, age", self.action_order)
