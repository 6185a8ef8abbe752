# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""All keys on one page."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.line import BLANK, Line, Span, line
from tui.widgets.pager import Pager
from tui.widgets.paint import ROLE_CLASSES

LEAVING = "back; on the first screen: leave"

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "everywhere",
        (
            ("j k  ↓ ↑", "one row down, up"),
            ("g G  ctrl+d ctrl+u", "top, bottom; half a page down, up"),
            ("c  r  s", "cancel the task; retry it; say something to its agent"),
            ("?  :  ctrl+p", "this page; all commands by name"),
            ("q", LEAVING),
        ),
    ),
    (
        "fleet",
        (
            ("enter  v", "open the task; review its diff"),
            ("!", "to what needs you, the most urgent first; again: the next"),
            ("/  esc", "filter by words; show all again"),
            ("0 1 2 3 4 5", "all, waiting, working, to review, failed, done"),
            ("o", "next order: state, submitted, id, tokens, tok/s, diff, age"),
        ),
    ),
    (
        "task",
        (
            ("z", "unfold or fold long results, thinking, outputs"),
            ("v", "review its diff"),
        ),
    ),
    (
        "review",
        (
            ("a  m", "approve; merge onto its branch"),
            ("x", "reject: with a comment as a new attempt, without one for good"),
            ("n  p", "next, previous task to review"),
            ("J K  ] [", "next, previous file"),
            ("z  t", "unfold outputs; how the agent came to this"),
        ),
    ),
    (
        "marks",
        (
            ("· ○ ▶ ◐", "queued; being prepared; running; checks"),
            ("◌ ↻", "waits for the engine; interrupted, will go on"),
            ("◆ ◈ ✔", "to review; being merged; merged"),
            ("✘ ■ ≠ ‼", "failed; stuck; conflicted; quarantined"),
            ("⊘ ⊖", "cancelled; rejected"),
            ("– …", "not known; cut off"),
        ),
    ),
)


def help_lines(leaving: str) -> list[Line]:
    """`leaving` says what becomes of the agents when the dashboard is left."""
    lines: list[Line] = []
    for title, keys in KEYS:
        lines += [*([BLANK] if lines else []), line(Span(title, "title"))]
        lines += [line(Span(f"  {key:<20}", "accent"), f"{what}, {leaving}" if what == LEAVING else what) for key, what in keys]
    return lines


class HelpScreen(ModalScreen[None]):
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss(None)", "Back")]

    def __init__(self, leaving: str) -> None:
        super().__init__()
        self._leaving = leaving

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog help"):
            yield Static("Keys", classes="dialog-title", markup=False)
            yield Pager(id="keys", hanging=22)

    def on_mount(self) -> None:
        pager = self.query_one(Pager)
        pager.show(help_lines(self._leaving), anew=True)
        pager.focus()
