# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""States as a mark and a word. The shape tells them apart without colour, and the word without the shape."""

from __future__ import annotations

from orchestrator.task import State
from orchestrator.views import TaskRow
from tui.line import Role

MARKS: dict[State, tuple[str, Role]] = {
    "queued": ("·", "dim"),
    "admitted": ("○", "busy"),
    "preparing": ("○", "busy"),
    "running": ("▶", "busy"),
    "claimed-done": ("◐", "busy"),
    "verified": ("◆", "accent"),
    "in-review": ("◆", "accent"),
    "merging": ("◈", "busy"),
    "merged": ("✔", "good"),
    "interrupted": ("↻", "warn"),
    "stuck": ("■", "bad"),
    "failed": ("✘", "bad"),
    "cancelled": ("⊘", "dim"),
    "rejected": ("⊖", "dim"),
    "conflicted": ("≠", "bad"),
    "quarantined": ("‼", "bad"),
}

# What every glyph of ours becomes on a terminal that has no UTF-8; all one cell for one cell. No state becomes '?', which stands for
# characters that cannot be shown, and no two states become the same.
ASCII: dict[str, str] = {
    "·": ".", "○": "o", "▶": ">", "◌": "w", "◐": "c", "◆": "R", "◈": "m", "✔": "+", "↻": "i", "■": "#", "✘": "x", "⊘": "/", "⊖": "%", "≠": "=", "‼": "!",
    "–": "-", "—": "-", "−": "-", "…": "~", "±": "+", "›": ">", "▌": "|", "│": "|", "┃": "|", "─": "-", "━": "-", "╸": "-", "╺": "-", "╻": "|", "╹": "|",
    "┏": "+", "┓": "+", "┗": "+", "┛": "+", "┣": "+", "┫": "+", "╋": "+", "▔": "-", "▁": "_", "▂": "_", "▃": ".", "▄": "-", "▅": "=", "▆": "+", "▇": "*",
    "█": "#", "▀": "#", "▊": "|", "▎": "|", "●": "*", "✓": "+", "✗": "x", "▸": ">", "▾": "v", "→": ">", "←": "<", "↑": "^", "↓": "v", "’": "'", "“": '"', "”": '"',
    "⏎": "<", "×": "x", "≥": ">", "⚠": "!", "⋯": "~",
}  # fmt: skip


def state_word(row: TaskRow) -> str:
    """The state in at most 12 cells; of a running task, what it is at."""
    if row.state == "running" and row.activity is not None:
        return row.activity.replace("waiting-", "wait: ")
    return row.state


def state_mark(row: TaskRow) -> tuple[str, Role]:
    mark, role = MARKS[row.state]
    if row.state == "running":
        match row.activity:
            case "waiting-engine":
                return "◌", "warn"
            case "checks":
                return "◐", role
            case _:
                return mark, role
    return mark, role
