"""The fleet's columns: fixed places that depend on nothing but the width, and what stands in them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.task import REVIEWABLE, WAITING
from orchestrator.views import TaskRow
from tui.checks import tally
from tui.foreign import one_line
from tui.format import UNKNOWN, age, changes, counted, files, rate, tokens
from tui.line import Line, Role, Span, fit, line
from tui.marks import state_mark, state_word
from tui.state import Seen, state_age_s

REASON = "last tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`grow` shares what the fixed widths leave over, up to `most` cells; a column is left out below `from_width` cells."""

    title: str
    width: int
    cell: Callable[[Seen, float], tuple[str, Role]]
    right: bool = False
    grow: int = 0
    most: int = 1_000
    from_width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    column: Column
    width: int


def place(width: int) -> list[Placed]:
    """The columns for a list of `width` cells, one cell apart."""
    shown = [column for column in COLUMNS if width >= column.from_width]
    widths = {column.title: column.width for column in shown}
    left = width - 1 - sum(column.width + 1 for column in shown)
    growing = sorted((column for column in shown if column.grow), key=lambda column: column.most)
    # Those with a limit first: what they cannot take goes to the others, and the last takes all that is left.
    for i, column in enumerate(growing):
        share = left * column.grow // sum(other.grow for other in growing[i:])
        more = max(0, min(share, column.most - column.width))
        widths[column.title] += more
        left -= more
    return [Placed(column=column, width=widths[column.title]) for column in shown]


def title_line(placed: list[Placed]) -> Line:
    spans = [Span(" ")]
    spans += [Span(fit(p.column.title, p.width, right=p.column.right) + " ", "gutter") for p in placed]
    return tuple(spans)


def row_line(seen: Seen, placed: list[Placed], now: float, *, chosen: bool) -> Line:
    spans = [Span("▌", "accent") if chosen else Span(" ")]
    for i, p in enumerate(placed):
        text, role = p.column.cell(seen, now)
        if p.column.title == REASON and _waits_unmeasured(seen.row):
            # Nothing is known for the columns that follow: the reason may have their room.
            spans.append(Span(fit(text, sum(rest.width + 1 for rest in placed[i:]) - 1) + " ", role))
            break
        spans.append(Span(fit(text, p.width, right=p.column.right) + " ", role))
    return tuple(spans)


def _waits_unmeasured(row: TaskRow) -> bool:
    return row.state in WAITING and row.output_tokens is None and row.insertions is None and row.files_changed is None


def whole_line(row: TaskRow) -> Line:
    """What the row of a narrow list has no room for: the whole of its reason, and its title."""
    text, role = now_cell(row, limit=400)
    known = f"waits for {text}" if row.state in WAITING and row.waiting_for and row.failure is None else text
    title = Span(one_line(row.title), "dim")
    return line(Span(" "), *([Span(known, "plain" if role == "dim" else role), Span("  ")] if known else []), title)


def now_cell(row: TaskRow, *, limit: int = 120) -> tuple[str, Role]:
    """What it waits for, what it does, how it went: the one thing to say about the task in its state."""
    if row.failure is not None and row.state not in {"queued", "merged"}:
        return f"{row.failure.kind}: {one_line(row.failure.message, limit=limit)}", "bad"
    if row.state in WAITING:
        return (one_line(row.waiting_for, limit=limit), "dim") if row.waiting_for else ("", "dim")
    if row.state in REVIEWABLE:
        return _checks_cell(row)
    if row.state == "merged":
        return (f"as {row.merged_commit[:10]}" if row.merged_commit else "", "dim")
    tool = one_line(row.last_tool or "", limit=limit)
    return tool, "warn" if tool.startswith("✗") else "plain"


def _checks_cell(row: TaskRow) -> tuple[str, Role]:
    found = tally(row.checks)
    if found.failed:
        return f"✗ {found.failed} of {counted(len(row.checks), 'check')} failed", "bad"
    if found.unrun:
        return f"{found.unrun} of {counted(len(row.checks), 'check')} not run", "warn"
    checks = f"✓ {counted(len(row.checks), 'check')}" if row.checks else "no checks"
    return (f"approved, {checks}", "good") if row.approved else (checks, "good" if row.checks else "dim")


def _state(seen: Seen, _now: float) -> tuple[str, Role]:
    mark, role = state_mark(seen.row)
    return f"{mark} {state_word(seen.row)}", role


def _number(text: str) -> tuple[str, Role]:
    return text, "dim" if text == UNKNOWN else "plain"


def _rate(seen: Seen, _now: float) -> tuple[str, Role]:
    text = rate(seen.row.tokens_per_s)
    return text, "dim" if text in {UNKNOWN, "0"} else "busy"


def _step(seen: Seen, _now: float) -> tuple[str, Role]:
    return _number(UNKNOWN if seen.row.step is None else str(seen.row.step))


COLUMNS: tuple[Column, ...] = (
    Column(title="state", width=14, cell=_state),
    Column(title="for", width=5, cell=lambda s, now: (age(state_age_s(s, now)), "dim"), right=True, from_width=60),
    Column(title="kind", width=10, cell=lambda s, _: (s.row.kind, "dim"), from_width=104),
    Column(title="task", width=15, cell=lambda s, _: (one_line(s.row.id, limit=120), "strong"), grow=1, most=24),
    Column(title="title", width=12, cell=lambda s, _: (one_line(s.row.title), "dim"), grow=2, most=48, from_width=132),
    Column(title="try", width=3, cell=lambda s, _: _number(str(s.row.attempt or UNKNOWN)), right=True, from_width=90),
    Column(title="step", width=4, cell=_step, right=True),
    Column(title=REASON, width=10, cell=lambda s, _: now_cell(s.row), grow=2),
    Column(title="tok", width=5, cell=lambda s, _: _number(tokens(s.row.output_tokens)), right=True, from_width=66),
    Column(title="tok/s", width=5, cell=_rate, right=True),
    Column(title="diff", width=10, cell=lambda s, _: _number(changes(s.row.insertions, s.row.deletions)), right=True, from_width=77),
    Column(title="files", width=5, cell=lambda s, _: _number(files(s.row.files_changed)), right=True, from_width=116),
)
