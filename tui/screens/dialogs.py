"""Small questions on top of a screen: words for the agent, and yes or no."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Static, TextArea

from tui.foreign import one_line


class CommentArea(TextArea):
    """Enter sends, since that is what one expects of a message; ctrl+j breaks the line."""

    class Sent(Message):
        """Enter was pressed."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Sent())
        elif event.key in {"ctrl+j", "shift+enter", "alt+enter"}:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)


class CommentDialog(ModalScreen[str | None]):
    """Gives the text, stripped; None when the person thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, title: str, hint: str, *, needed: bool = False) -> None:
        super().__init__()
        self._title = one_line(title, limit=100)
        self._hint = hint
        self._needed = needed

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog-title", markup=False)
            yield Static(self._hint, classes="dialog-hint", markup=False)
            yield CommentArea(soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True)
            yield Static("", id="complaint", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Send  enter", id="send", compact=True)
                yield Button("Back  esc", id="back", compact=True)
                yield Static("ctrl+j new line", classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(CommentArea).focus()

    @on(Button.Pressed, "#send")
    @on(CommentArea.Sent)
    def send(self) -> None:
        text = self.query_one(CommentArea).text.strip()
        if self._needed and not text:
            self.query_one("#complaint", Static).update("write something, or go back with esc")
            return
        self.dismiss(text)

    @on(Button.Pressed, "#back")
    def back(self) -> None:
        self.dismiss(None)


class ConfirmDialog(ModalScreen[bool]):
    """y or n; escape is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape,q", "dismiss(False)", "No"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = one_line(title, limit=100)
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="dialog-title", markup=False)
            yield Static(self._text, classes="dialog-hint", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Yes  y", id="yes", compact=True)
                yield Button("No  n", id="no", compact=True)

    @on(Button.Pressed, "#yes")
    def yes(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def no(self) -> None:
        self.dismiss(False)
