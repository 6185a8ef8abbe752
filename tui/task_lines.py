# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""One task in words: what it is, how it stands, its notes and checks, and its trajectory. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.task import ACTIVE, MERGEABLE
from orchestrator.views import CheckOutput, TaskDetail, TaskRow
from tui.foreign import one_line
from tui.format import UNKNOWN, age, changes, counted, duration, grouped, rate, tokens
from tui.line import BLANK, Line, Span, line
from tui.marks import state_mark, state_word
from tui.prose import reflowed
from tui.trajectory_lines import Entry, block, live_lines, trajectory_lines


def headline(row: TaskRow, state_age_s: float) -> Line:
    mark, role = state_mark(row)
    return line(
        Span(f"{mark} {state_word(row)}", role),
        Span(f" {age(state_age_s)}", "dim"),
        "  ",
        Span(one_line(row.id, limit=80), "strong"),
        "  ",
        one_line(row.title, limit=200),
    )


def numbers_line(row: TaskRow) -> Line:
    """What changes while an agent works."""
    return _pairs(
        [
            ("attempt", str(row.attempt or UNKNOWN)),
            ("step", UNKNOWN if row.step is None else str(row.step)),
            ("out", grouped(row.output_tokens)),
            ("tok/s", rate(row.tokens_per_s)),
            ("diff", changes(row.insertions, row.deletions)),
            ("files", UNKNOWN if row.files_changed is None else str(row.files_changed)),
        ]
    )


def fact_lines(row: TaskRow) -> list[Line]:
    """Why it waits or failed, or what became of it; then what it is and where."""
    lines: list[Line] = []
    if row.waiting_for:
        lines.append(line(Span("waits for ", "dim"), Span(one_line(row.waiting_for), "warn")))
    if row.failure:
        lines.append(line(Span(f"✘ {row.failure.kind}: ", "bad"), one_line(row.failure.message)))
    if row.approved and row.state in MERGEABLE:
        lines.append(line(Span("✓ approved", "good"), Span(", m merges it", "dim")))
    if row.merged_commit:
        lines.append(line(Span("✔ merged as ", "good"), row.merged_commit[:12]))
    lines.append(
        _pairs(
            [
                ("kind", row.kind),
                ("agent", one_line(row.agent, limit=40)),
                ("in", tokens(row.input_tokens)),
                ("cached", tokens(row.cached_tokens)),
            ]
        )
    )
    if row.branch:
        lines.append(_pairs([("branch", one_line(row.branch, limit=120)), ("base", row.base_commit[:12])]))
    if row.workspace:
        lines.append(_pairs([("workspace", one_line(row.workspace, limit=300))]))
    return lines


def check_lines(checks: Sequence[CheckOutput], *, unfolded: bool) -> list[Line]:
    """Each check with its command, its result in a word, and its output."""
    lines: list[Line] = []
    for check in checks:
        mark, verdict = _verdict(check)
        lines.append(line("  ", mark, " ", Span(one_line(check.command), "strong"), Span(f"  {verdict}", "dim")))
        if check.output.strip():
            lines += block(check.output.strip("\n"), indent="    ", role=Span("", "dim"), most=None if unfolded else 6)
    return lines


def _verdict(check: CheckOutput) -> tuple[Span, str]:
    if check.exit_code is None:
        return (
            (Span("·", "dim"), "not run yet")
            if check.seconds is None
            else (Span("✗", "bad"), f"out of time after {duration(check.seconds)}")
        )
    if check.exit_code == 0:
        return Span("✓", "good"), f"passed in {duration(check.seconds)}"
    return Span("✗", "bad"), f"exit {check.exit_code} after {duration(check.seconds)}"


def note_lines(detail: TaskDetail) -> list[Line]:
    """The agent's notes and the comments of people, each under its own mark."""
    lines: list[Line] = []
    for title, texts in (("notes of the agent", detail.notes), ("comments to the agent", [*map(reflowed, detail.comments)])):
        if texts:
            lines += [BLANK, line(Span(title, "title"))]
            for text in texts:
                lines += block(text, indent="  › ", role=Span(""), most=12)
    return lines


def detail_lines(detail: TaskDetail, entries: Sequence[Entry] | None, *, unfolded: bool) -> list[Line]:
    """The whole document of a task, top to bottom. `entries` None: the trajectory is not there (yet)."""
    lines = [*fact_lines(detail.row), *note_lines(detail)]
    if detail.checks:
        lines += [BLANK, line(Span("checks", "title")), *check_lines(detail.checks, unfolded=unfolded)]
    if len(detail.attempts) > 1:
        lines += [BLANK, line(Span("attempts", "title")), *map(_attempt_line, _numbered(detail))]
    lines += [
        BLANK,
        line(Span("prompt", "title")),
        *block(reflowed(detail.prompt), indent="  ", role=Span(""), most=None if unfolded else 6),
    ]
    lines += [BLANK, line(Span("trajectory", "title"), Span(_trajectory_note(detail, entries), "gutter"))]
    lines += trajectory_lines(entries or [], unfolded=unfolded)
    if detail.live_text:
        lines += live_lines(detail.live_text, detail.row.step)
    return lines


def follows_tail(row: TaskRow) -> bool:
    """Whether a reader wants the end of the document (an agent at work) or its beginning."""
    return row.state in ACTIVE


def _trajectory_note(detail: TaskDetail, entries: Sequence[Entry] | None) -> str:
    if entries is None:
        return "  none yet" if detail.row.attempt == 0 else "  being read"
    return f"  attempt {detail.row.attempt}, {counted(len(entries), 'message')}"


def _numbered(detail: TaskDetail) -> list[tuple[int, str]]:
    return [
        (
            attempt.number,
            f"{attempt.outcome or 'under way'}, {counted(attempt.steps, 'step')}"
            + (f", {attempt.failure.kind}: {one_line(attempt.failure.message, limit=160)}" if attempt.failure else "")
            + (f", resumed {attempt.resumptions}×" if attempt.resumptions else ""),
        )
        for attempt in detail.attempts
    ]


def _attempt_line(numbered: tuple[int, str]) -> Line:
    number, text = numbered
    return line(Span(f"  {number} ", "strong"), one_line(text))


def _pairs(pairs: Sequence[tuple[str, str]]) -> Line:
    spans: list[Span] = []
    for name, value in pairs:
        spans += [Span(f"{name} ", "dim"), Span(value), Span("   ")]
    return tuple(spans[:-1])
