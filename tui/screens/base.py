"""What all screens of a station share: header, banner, keys for the chosen task, and the answer to a terminal that is too small."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, cast

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from orchestrator.task import ACTIVE
from tui.desk import CommandDone, Desk, DetailArrived, DiffArrived, LookFailed
from tui.foreign import one_line
from tui.line import line
from tui.screens.dialogs import CommentDialog, ConfirmDialog
from tui.state import Model, Only
from tui.verbs import Verb, objection
from tui.widgets.header import Banner, Bar, Header
from tui.widgets.hints import KeyHints
from tui.widgets.paint import ROLE_CLASSES

MIN_WIDTH = 60
MIN_HEIGHT = 12
TALL_FROM = 30
TALL_FROM_WIDTH = 96


class Command(NamedTuple):
    """What the command palette offers on a screen."""

    title: str
    help: str
    call: Callable[[], None]


class ShowMe(Message):
    """A screen came up, or changed its size, and wants to be told what is known."""


@dataclass
class Open(Message):
    """A person wants to see a task in another way."""

    what: Literal["task", "review"]
    task: str


# A footer that is too narrow loses its last keys: a screen's own come first, then help, which tells the others.
HELP_KEY = Binding("question_mark", "app.help", "Help", key_display="?")
TASK_KEYS: list[BindingType] = [
    Binding("c", "cancel_task", "Cancel"),
    Binding("r", "retry_task", "Retry"),
    Binding("s", "say_to_task", "Say"),
    Binding("colon", "app.command_palette", "Commands", show=False, key_display=":"),
]
# A verdict is given where the diff is seen; elsewhere its keys say so.
VERDICT_ELSEWHERE: list[BindingType] = [
    Binding(key, f"verdict_elsewhere('{verb}')", show=False) for key, verb in (("a", "approve"), ("x", "reject"), ("m", "merge"))
]
VERBS: dict[str, Verb] = {
    "cancel_task": "cancel",
    "retry_task": "retry",
    "say_to_task": "say",
    "approve": "approve",
    "reject": "reject",
    "merge": "merge",
}
"""The actions that give a command."""


class StationScreen(Screen[None]):
    """Subclasses give `body`, `show_body` and `selected`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.model = Model()
        self.now = 0.0
        self._large = True

    def compose(self) -> ComposeResult:
        yield Header()
        yield Banner()
        yield from self.body()
        yield KeyHints()
        yield Bar(id="too-small")

    def body(self) -> Iterable[Widget]:
        """The widgets between banner and footer."""
        raise NotImplementedError

    def show_body(self) -> None:
        """Show `self.model` as of `self.now`."""
        raise NotImplementedError

    @property
    def selected(self) -> str | None:
        """The task that commands are for."""
        raise NotImplementedError

    @property
    def filter_shown(self) -> Only | None:
        return None

    def show(self, model: Model, now: float, *, large: bool = True) -> None:
        """`large` False: the terminal has no glyphs for large numerals."""
        self.model, self.now, self._large = model, now, large
        tall = self._large and self.size.height >= TALL_FROM and self.size.width >= TALL_FROM_WIDTH
        self.query_one(Header).show(model, now, tall=tall, only=self.filter_shown)
        self.query_one(Banner).show(model)
        self.set_class(model.stale(now) and model.received_at is not None, "-stale")
        self.show_body()
        self.offer()

    def offer(self) -> None:
        """Only keys that can act on the chosen task stand at the bottom."""
        row = self.model.row(self.selected)
        self.query_one(KeyHints).leave_out({action for action, verb in VERBS.items() if row is None or objection(verb, row)})

    def show_again(self) -> None:
        """Show what is known once more, after something of the screen's own has changed."""
        self.show(self.model, self.now, large=self._large)

    def detail_arrived(self, message: DetailArrived) -> None:
        """A look-up came back. Screens that asked for none ignore it."""

    def diff_arrived(self, message: DiffArrived) -> None:
        """A diff came back."""

    def look_failed(self, message: LookFailed) -> None:
        """A look-up gave nothing."""

    def command_done(self, message: CommandDone) -> None:
        """A command was carried out."""

    def on_mount(self) -> None:
        self.post_message(ShowMe())

    def on_screen_resume(self) -> None:
        self.post_message(ShowMe())

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        small = width < MIN_WIDTH or height < MIN_HEIGHT
        self.set_class(small, "-too-small")
        self.query_one("#too-small", Bar).put([line(text) for text in too_small(width, height)] if small else [])
        self.post_message(ShowMe())

    def commands(self) -> Iterable[Command]:
        yield Command("Cancel the task", "Stop its agent; what it did so far is kept", self.action_cancel_task)
        yield Command("Retry the task", "A new attempt, with a comment if you like", self.action_retry_task)
        yield Command("Say something to the agent", "It hears it after its current step", self.action_say_to_task)

    def action_verdict_elsewhere(self, verb: Verb) -> None:
        if (task := self.chosen_for(verb)) is not None:
            self.notify(f"{verb}: look at {one_line(task, limit=40)} first, with v", severity="warning", markup=False)

    def action_cancel_task(self) -> None:
        if (task := self.chosen_for("cancel")) is None:
            return
        row = self.model.row(task)
        at_work = row is not None and row.state in ACTIVE
        question = "Its agent is at work and will be stopped. What it did so far is kept." if at_work else "What it did so far is kept."
        self._dashboard.push_screen(
            ConfirmDialog(f"Cancel {task}?", question), lambda yes: self.desk.command("cancel", task) if yes else None
        )

    def action_retry_task(self) -> None:
        self.ask_comment("retry", "Retry", "What should the next attempt do differently? May stay empty.")

    def action_say_to_task(self) -> None:
        self.ask_comment("say", "Say to", "The agent hears it after its current step.", needed=True)

    def ask_comment(self, verb: Verb, title: str, hint: str, *, needed: bool = False) -> None:
        """Ask for words, then give the command with them. Escape gives none."""
        if (task := self.chosen_for(verb)) is None:
            return
        self._dashboard.push_screen(
            CommentDialog(f"{title} {task}", hint, needed=needed),
            lambda text: self.desk.command(verb, task, text) if text is not None else None,
        )

    @property
    def _dashboard(self) -> App[object]:
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType] (Textual leaves the parameter of App open)

    def chosen_for(self, verb: Verb) -> str | None:
        """The task that a command is for; None, and said why, when there is none or the command does not fit it."""
        task, row = self.selected, self.model.row(self.selected)
        why = f"{verb}: no task is chosen" if task is None else objection(verb, row) if row is not None else None
        if why is not None:
            self.notify(why, severity="warning", markup=False)
        return task if why is None else None


def too_small(width: int, height: int) -> list[str]:
    """The message for a terminal of this size, in lines that fit it as far as they can."""
    text = f"too small: {width}x{height}, needs {MIN_WIDTH}x{MIN_HEIGHT}"
    if width >= len(text):
        return [text]
    return ["too small", f"{width}x{height}", f"needs {MIN_WIDTH}x{MIN_HEIGHT}"]
