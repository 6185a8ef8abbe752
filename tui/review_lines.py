# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""A task's change as lines to read: what stands in the way on top, then checks and notes, then each file's hunks. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.task import LEASED, WAITING
from orchestrator.views import DiffDocument, FileView, HunkView, TaskDetail, TaskRow
from tui.checks import tally
from tui.foreign import one_line, visible
from tui.format import UNKNOWN, changes, counted, tokens
from tui.line import BLANK, Line, Role, Span, line
from tui.task_lines import check_lines, fact_lines, note_lines, numbers_line

LINE_CHARACTERS = 1_000
FILE_LINES = 4_000
ALL_LINES = 20_000

STATUS_MARK: dict[str, tuple[str, Role]] = {
    "added": ("A", "good"),
    "deleted": ("D", "bad"),
    "modified": ("M", "accent"),
    "renamed": ("R", "warn"),
    "copied": ("C", "warn"),
    "type-changed": ("T", "warn"),
}

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the document that the list at its side jumps to: `at` is the index of its first line."""

    label: Line
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    lines: list[Line]
    sections: list[Section]


def verdict_lines(document: DiffDocument, row: TaskRow | None = None) -> list[Line]:
    """What a reviewer must know before reading: where it would land, and what is in the way of it; or that it has landed."""
    target = one_line(document.target or "", limit=100)
    if row is not None and row.state == "merged":
        return [line(Span(f"✔ merged into {target} as {(row.merged_commit or UNKNOWN)[:12]}", "good"))]
    if row is not None and row.state in LEASED:
        return [line(Span(f"attempt {row.attempt} is at work: this is its change so far", "busy"))]
    lines: list[Line] = []
    if document.target is None:
        lines.append(line(Span("⚠ no branch to land on: HEAD was detached when the task was added", "warn")))
    if document.conflicts:
        shown = ", ".join(one_line(path, limit=80) for path in document.conflicts[:6])
        more = f" and {len(document.conflicts) - 6} more" if len(document.conflicts) > 6 else ""
        lines.append(line(Span(f"✘ conflicts with {target} in {shown}{more}", "alarm")))
    if document.target_moved:
        rest = "" if document.conflicts else ", no conflicts known"
        lines.append(line(Span(f"{target} has moved since the base commit {document.base_commit[:12]}{rest}", "dim")))
    return lines


def no_diff_line(row: TaskRow) -> Line:
    """Why a task without a snapshot has no diff; nothing is wrong with that."""
    if row.state in WAITING:
        return line(Span("no change to see: it waits for its turn", "dim"))
    if row.state in LEASED:
        return line(Span(f"attempt {row.attempt} has begun and changed nothing yet", "dim"))
    return line(Span("no change: no attempt has left a snapshot", "dim"))


def summary(document: DiffDocument) -> Line:
    known = [file for file in document.files if file.insertions is not None]
    added, removed = sum(file.insertions or 0 for file in known), sum(file.deletions or 0 for file in known)
    target = f" → {one_line(document.target, limit=60)}" if document.target else ""
    return line(
        Span(counted(len(document.files), "file"), "strong"),
        Span(f"  +{tokens(added)}", "good"),
        Span(f" −{tokens(removed)}", "bad"),
        Span(f"  {document.base_commit[:8]}..{document.snapshot_commit[:8]}{target}", "dim"),
    )


def build(document: DiffDocument | None, detail: TaskDetail | None, *, unfolded: bool = False) -> Document:
    """The document of a review; the parts that have not arrived yet are left out."""
    lines: list[Line] = []
    sections: list[Section] = []
    if detail is not None:
        sections.append(Section(label=_overview_label(detail), at=0))
        lines += [numbers_line(detail.row), *fact_lines(detail.row)]
        lines += note_lines(detail)
        if detail.checks:
            lines += [BLANK, line(Span("checks", "title")), *check_lines(detail.checks, unfolded=unfolded)]
    for file in document.files if document else ():
        if lines:
            lines.append(BLANK)
        sections.append(Section(label=_file_label(file), at=len(lines)))
        lines += file_lines(file, room=ALL_LINES - len(lines))
    return Document(lines=lines, sections=sections)


def file_lines(file: FileView, *, room: int = FILE_LINES) -> list[Line]:
    """A file's title, its note, and its hunks with the numbers of old and new lines."""
    mark, role = STATUS_MARK[file.status]
    name = one_line(file.path, limit=300)
    old = f"{one_line(file.old_path, limit=300)} → " if file.old_path and file.old_path != file.path else ""
    lines: list[Line] = [
        line(
            Span(f"{mark} ", role),
            Span(f"{old}{name}", "strong"),
            Span(f"  {file.status} {changes(file.insertions, file.deletions)}", "dim"),
        )
    ]
    if file.old_mode and file.new_mode and file.old_mode != file.new_mode:
        lines.append(line(Span(f"  mode {file.old_mode} → {file.new_mode}", "warn")))
    if file.binary:
        lines.append(line(Span("  binary, not shown", "dim")))
    if file.note:
        lines.append(line(Span(f"  {one_line(file.note)}", "warn")))
    most = max(0, min(FILE_LINES, room))
    for hunk in file.hunks:
        lines += _hunk_lines(hunk, most - len(lines))
        if len(lines) >= most:
            lines.append(line(Span("  … the rest of this file is too long for the screen; `stationmaster diff` shows it", "warn")))
            break
    return lines


def _hunk_lines(hunk: HunkView, room: int) -> list[Line]:
    numbers = _HUNK.match(hunk.header)
    old, new = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    lines: list[Line] = [line(Span(f"           {one_line(hunk.header)}", "hunk"))]
    for text in hunk.lines[: max(0, room)]:
        mark, body = text[:1], visible(text[1:], limit=LINE_CHARACTERS)
        match mark:
            case "+":
                lines.append(line(Span(f"{'':4} {new:4} ", "gutter"), Span(f"+ {body}", "added")))
                new += 1
            case "-":
                lines.append(line(Span(f"{old:4} {'':4} ", "gutter"), Span(f"- {body}", "removed")))
                old += 1
            case "\\":
                lines.append(line(Span(f"          {body.strip()}", "gutter")))
            case _:
                lines.append(line(Span(f"{old:4} {new:4} ", "gutter"), Span(f"  {body}")))
                old, new = old + 1, new + 1
    return lines


def _overview_label(detail: TaskDetail) -> Line:
    checks = detail.row.checks
    found = tally(checks)
    if found.failed:
        verdict = Span(f"  ✗ {found.failed} of {len(checks)}", "bad")
    elif found.unrun:
        verdict = Span("  not run yet" if found.unrun == len(checks) else f"  {found.unrun} not run yet", "dim")
    else:
        verdict = Span(f"  ✓ {len(checks)}", "good")
    return line(Span("checks, notes", "dim"), *([verdict] if checks else []))


def _file_label(file: FileView) -> Line:
    mark, role = STATUS_MARK[file.status]
    return line(Span(f"{mark} ", role), one_line(file.path, limit=200), Span(f"  {changes(file.insertions, file.deletions)}", "gutter"))
