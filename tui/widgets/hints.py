"""The keys at the bottom of a screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # Textual does not export it

from tui.line import Span, width_of


class KeyHints(Footer):
    """Whole hints only: where the screen is too narrow for all, those at the end are left out. Order bindings by importance."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self.left_out: set[str] = set()

    def leave_out(self, actions: set[str]) -> None:
        """Keys with these actions cannot act now. (Not shown at all, since a shade of grey says nothing without colours.)"""
        if actions != self.left_out:
            self.left_out = actions
            self._fit(self.children, self.screen.size.width)

    def compose(self) -> ComposeResult:
        hints = list(super().compose())
        self._fit(hints, self.screen.size.width)
        yield from hints

    def on_resize(self, event: events.Resize) -> None:
        self._fit(self.children, event.size.width)

    def _fit(self, hints: Iterable[Widget], width: int) -> None:
        taken = 0
        for hint in hints:
            if isinstance(hint, FooterKey):
                if hint.action in self.left_out:
                    hint.display = False
                    continue
                taken += width_of((Span(f"{hint.key_display} {hint.description}"),))
                hint.display = taken <= width
                taken += 1
