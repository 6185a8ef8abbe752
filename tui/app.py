"""The application: one model, kept by the feed, shown by whatever screen is up."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Sequence

from textual import on
from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.message import Message
from textual.notifications import Notify
from textual.screen import ModalScreen, Screen

from tui.client import Feed, SnapshotArrived, Station, StationLost, Trouble
from tui.desk import CommandDone, CommandFailed, Desk, DetailArrived, DiffArrived, LookFailed
from tui.filters import AsciiOnly, NoColours, speaks_utf8
from tui.foreign import one_line
from tui.format import counted
from tui.screens.base import Open, ShowMe, StationScreen
from tui.screens.dialogs import ConfirmDialog
from tui.screens.fleet import FleetScreen
from tui.screens.help import HelpScreen
from tui.screens.review import ReviewScreen
from tui.screens.task import TaskScreen
from tui.state import Model, counts, fold, lose, next_after
from tui.theme import THEME
from tui.verbs import in_keys

TICK_S = 1.0
REFUSAL_S = 5.0


class Dashboard(App[None]):
    """A client of a station like any other: it can leave and come back, the agents go on.

    `ends_station`: whoever opened it ends the station when it is left (the demo), so leaving is asked about while tasks are at work.
    `clock` gives monotonic seconds. `poll_s` and `back_off_s` are the feed's.
    """

    TITLE = "Stationmaster"
    CSS_PATH = "dashboard.tcss"
    NOTIFICATION_TIMEOUT = 3

    def __init__(
        self,
        station: Station,
        *,
        task: str | None = None,
        ascii_only: bool | None = None,
        ends_station: bool = False,
        clock: Callable[[], float] = time.monotonic,
        poll_s: float = 0.25,
        back_off_s: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    ) -> None:
        super().__init__()
        self.model = Model()
        self._clock = clock
        self._first_task = task
        self._ends_station = ends_station
        self._ascii = not speaks_utf8() if ascii_only is None else ascii_only
        self._extra: list[LineFilter] = [*([NoColours()] if self.no_color else []), *([AsciiOnly()] if self._ascii else [])]
        self._feed = Feed(station, self._deliver, poll_s=poll_s, back_off_s=back_off_s)
        self._desk = Desk(station, self._deliver)

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._extra]

    def now(self) -> float:
        """Seconds of the clock on which the model's times are."""
        return self._clock()

    def _deliver(self, message: Message) -> None:
        self.post_message(message)

    def on_mount(self) -> None:
        self.register_theme(THEME)
        self.theme = THEME.name
        self._obey_signals()
        self.push_screen(FleetScreen(self._desk, self._first_task))
        self._desk.start()
        self._feed.start()
        self.set_interval(TICK_S, self._show)

    def on_unmount(self) -> None:
        self._feed.close()
        self._desk.close()

    def _obey_signals(self) -> None:
        """TERM and a terminal that hangs up end the dashboard as `q` does, with the terminal as it was before."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(name, self.exit)

    def _station_screen(self) -> StationScreen | None:
        """The screen of ours that is up, or lies under a dialog."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, StationScreen)), None)

    def _shown_screen(self) -> StationScreen | None:
        """The same while its widgets are there: not before it is composed, and not while the dashboard closes."""
        if not self._screen_stack_is_up():
            return None
        screen = self._station_screen()
        return screen if screen is not None and screen.is_mounted else None

    @on(ShowMe)
    def _show(self) -> None:
        if (screen := self._shown_screen()) is not None:
            screen.show(self.model, self.now(), large=not self._ascii)

    def _screen_stack_is_up(self) -> bool:
        return self.is_running and bool(self._screen_stacks.get(self._current_mode))

    @on(Open)
    def _open(self, message: Open) -> None:
        """`q` goes back to where the person was: a screen is put on top, unless it is the one just below."""
        kind = TaskScreen if message.what == "task" else ReviewScreen
        *below, top = [screen for screen in self.screen_stack if isinstance(screen, StationScreen)]
        if isinstance(top, kind) and top.selected == message.task:
            return
        if below and isinstance(below[-1], kind) and below[-1].selected == message.task and self.screen is top:
            self.pop_screen()
        else:
            self.push_screen(kind(self._desk, message.task))

    @on(SnapshotArrived)
    def _take_snapshot(self, message: SnapshotArrived) -> None:
        try:
            back = self.model.lost is not None
            self._feed.go_on_after(next_after(self.model, message.snapshot))
            self.model = fold(self.model, message.snapshot, self.now())
        finally:
            message.taken.set()
        if back:
            self.notify("the station answers again", markup=False)
        self._show()

    @on(StationLost)
    def _lose_station(self, message: StationLost) -> None:
        self.model = lose(self.model, message.trouble.message, now=self.now(), clock=time.time())
        self._show()

    @on(DetailArrived)
    def _detail(self, message: DetailArrived) -> None:
        if (screen := self._shown_screen()) is not None:
            screen.detail_arrived(message)

    @on(DiffArrived)
    def _diff(self, message: DiffArrived) -> None:
        if (screen := self._shown_screen()) is not None:
            screen.diff_arrived(message)

    @on(LookFailed)
    def _look_failed(self, message: LookFailed) -> None:
        if (screen := self._shown_screen()) is not None:
            screen.look_failed(message)

    @on(CommandDone)
    def _done(self, message: CommandDone) -> None:
        self.notify(one_line(message.text), severity="error" if message.refused else "information", markup=False)
        if (screen := self._shown_screen()) is not None:
            screen.command_done(message)
            self._show()

    @on(CommandFailed)
    def _failed(self, message: CommandFailed) -> None:
        self.notify(said(message.trouble), severity="error", timeout=REFUSAL_S, markup=False)

    @on(Notify)
    def _replace_older(self, message: Notify) -> None:
        """A newer notification takes the place of the older one, so that none pile up over the document; an error gives way to errors only."""
        newer = message.notification.severity
        for older in [known for known in self._notifications if newer == "error" or known.severity != "error"]:
            self._unnotify(older)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        if isinstance(screen, StationScreen):
            for command in screen.commands():
                yield SystemCommand(command.title, command.help, command.call)
        yield SystemCommand("Help", "All keys on one page", self.action_help)
        yield SystemCommand("Theme", "Other colours", self.action_change_theme)
        yield SystemCommand("Leave", f"{self._leaving[0].upper()}{self._leaving[1:]}", self.action_leave)

    @property
    def _leaving(self) -> str:
        return "the demo ends" if self._ends_station else "the agents go on"

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._leaving))

    def action_help_quit(self) -> None:
        """ctrl+c: nothing is lost by it, and it says what leaves."""
        if isinstance(self.screen, ModalScreen):
            words = "esc goes back"
        elif isinstance(self.screen, FleetScreen):
            words = f"q leaves: {self._leaving}"
        else:
            words = f"q goes back; on the fleet it leaves: {self._leaving}"
        self.notify(words, markup=False)

    async def action_quit(self) -> None:
        self.action_leave()

    def action_leave(self) -> None:
        unfinished = unfinished_work(self.model) if self._ends_station else ""
        if not unfinished or isinstance(self.screen, ConfirmDialog):
            self.exit()
        else:
            question = f"Leaving ends the demo; {unfinished}."
            self.push_screen(ConfirmDialog("Leave the demo?", question), lambda yes: self.exit() if yes else None)

    def action_go_back(self) -> None:
        left = self._station_screen()
        if len(self.screen_stack) <= 2 or left is None:
            return
        self.pop_screen()
        if isinstance(self.screen, FleetScreen):
            # The cursor goes where the person was last.
            self.screen.tasks.go_to(left.selected)


def said(trouble: Trouble) -> str:
    """A trouble as a notification: what, and what to do about it."""
    return f"{one_line(trouble.message)}; {in_keys(one_line(trouble.hint))}" if trouble.hint else one_line(trouble.message)


def unfinished_work(model: Model) -> str:
    """How much is not done yet, in words; empty when no task works or waits (or nothing is known)."""
    found = counts(model.queue)
    parts: list[str] = []
    if found is not None and found.working:
        parts.append(f"{counted(found.working, 'agent')} {'is' if found.working == 1 else 'are'} still at work")
    if found is not None and found.waiting:
        parts.append(f"{counted(found.waiting, 'task')} {'waits' if found.waiting == 1 else 'wait'}")
    return ", ".join(parts)
