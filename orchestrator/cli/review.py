"""`review`, `diff`, `approve` and `reject`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from orchestrator.cli.dashboard import open_dashboard
from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import age, columns, on_terminal, one_line, paint, plural, print_json, say, table, visible
from orchestrator.cli.reading import need_home, read, station
from orchestrator.cli.work import diff_size, tell
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.task import REVIEWABLE
from orchestrator.views import DiffDocument, FileView, TaskRow


@click.command()
@click.argument("task", required=False)
@with_json
@with_home
def review(home: Home, as_json: bool, task: str | None) -> int:
    """The diffs that wait for a person, and apart from them the tasks whose merge met conflicts. With TASK, in a terminal: the
    dashboard, opened on it.

    \b
    Example:  stationmaster review
    """
    if task is not None and not as_json and on_terminal():
        need_home(home)
        return open_dashboard(home, task=task)
    rows = read(home, lambda reader: reader.tasks())
    if task is not None and all(row.id != task for row in rows):
        raise UserError(f"there is no task `{task}`", hint="`stationmaster list` shows them")
    waiting = ranked([row for row in rows if row.state in REVIEWABLE and task in (None, row.id)])
    if as_json:
        print_json(waiting)
        return 0
    for line in _waiting_lines(waiting, home):
        say(line)
    for line in _conflicted_lines([row for row in rows if row.state == "conflicted" and task in (None, row.id)], home):
        say(line)
    return 0


def ranked(waiting: list[TaskRow]) -> list[TaskRow]:
    """What needs a person's eye first: not yet approved, then by priority, then what has waited longest."""
    return sorted(waiting, key=lambda row: (row.approved, -row.priority, -row.state_age_s))


def _waiting_lines(waiting: list[TaskRow], home: Home) -> Iterator[str]:
    if not waiting:
        yield "nothing waits for review"
        return
    rows = [
        [one_line(row.id), "approved" if row.approved else "", diff_size(row), _checks(row), age(row.state_age_s), one_line(row.title)]
        for row in waiting
    ]
    lines = table(["TASK", "APPROVED", "DIFF", "CHECKS", "AGE", "TITLE"], rows, right=frozenset({2, 4}), room=columns())
    yield paint(lines[0], "bold")
    yield from lines[1:]
    if on_terminal():
        first = f"{one_line(waiting[0].id)}{home.option()}"
        yield from (
            "",
            "next:",
            f"    stationmaster diff {first}",
            f"    stationmaster approve {first}",
            f"    stationmaster merge {first}",
        )


def _conflicted_lines(conflicted: list[TaskRow], home: Home) -> Iterator[str]:
    if not conflicted:
        return
    again = f"stationmaster retry {one_line(conflicted[0].id)}{home.option()}"
    yield from ("", paint(f"conflicted with their branch; `{again}` starts again from the branch as it is now:", "red"))
    width = max(len(row.id) for row in conflicted)
    yield from (f"    {one_line(row.id).ljust(width)}  {one_line(row.title)}" for row in conflicted)


def _checks(row: TaskRow) -> str:
    passed = sum(check.exit_code == 0 for check in row.checks)
    return f"{passed} of {len(row.checks)} passed" if row.checks else "none"


@click.command()
@click.argument("task")
@click.option("--stat", is_flag=True, help="Only the files and how much of each changed.")
@click.option("--since-last-look", is_flag=True, help="Only what is new since you last looked at this diff.")
@with_json
@with_home
def diff(home: Home, as_json: bool, task: str, stat: bool, since_last_look: bool) -> None:
    """What a task changed, against its base commit.

    Once it is printed to its end it counts as looked at, through a pager or a pipe too: --since-last-look then starts there,
    and a verified task is in review. --stat and --json are no look, and neither is a diff while the station is down.

    \b
    Example:  stationmaster diff fix-rounding --stat
    """
    document = read(home, lambda reader: reader.diff(task, since_last_look=since_last_look))
    if as_json:
        print_json(document)
        return
    for line in _stat_lines(document) if stat else _diff_lines(document):
        say(line)
    sys.stdout.flush()  # a reader that has gone has not seen it
    if not stat:
        _remember(home, task)


def _remember(home: Home, task: str) -> None:
    try:
        station(home).look(task)
    except StationDown:
        return  # read-only while the station is down: the last look stays the one before


def _diff_lines(document: DiffDocument) -> Iterator[str]:
    yield from _remarks(document)
    for file in document.files:
        yield from _file_lines(file)
    if not document.files:
        yield "no difference"


def _remarks(document: DiffDocument) -> Iterator[str]:
    if document.conflicts:
        yield paint(f"conflicts with {one_line(document.target or '?')} in: {', '.join(map(one_line, document.conflicts))}", "red")
    elif document.target_moved:
        yield paint(f"{one_line(document.target or '?')} has moved on since the base commit; no conflicts", "yellow")


def _file_lines(file: FileView) -> Iterator[str]:
    old, new = file.old_path or file.path, file.path
    yield paint(f"diff --git a/{one_line(old)} b/{one_line(new)}", "bold")
    if file.status == "added":
        yield paint(f"new file mode {file.new_mode}", "bold")
    elif file.status == "deleted":
        yield paint(f"deleted file mode {file.old_mode}", "bold")
    elif file.old_mode != file.new_mode:
        yield paint(f"old mode {file.old_mode}\nnew mode {file.new_mode}", "bold")
    if file.status in ("renamed", "copied"):
        word = "rename" if file.status == "renamed" else "copy"
        yield paint(f"{word} from {one_line(old)}\n{word} to {one_line(new)}", "bold")
    if file.note:
        yield f"({one_line(file.note)})"
    elif file.binary:
        yield "(binary file)"
    if not file.hunks:
        return
    yield paint("--- /dev/null" if file.status == "added" else f"--- a/{one_line(old)}", "bold")
    yield paint("+++ /dev/null" if file.status == "deleted" else f"+++ b/{one_line(new)}", "bold")
    for hunk in file.hunks:
        yield paint(visible(hunk.header), "cyan")
        yield from (_hunk_line(line) for line in hunk.lines)


def _hunk_line(line: str) -> str:
    shown = visible(line.rstrip("\n"))
    if line.startswith("+"):
        return paint(shown, "green")
    return paint(shown, "red") if line.startswith("-") else shown


def _stat_lines(document: DiffDocument) -> Iterator[str]:
    yield from _remarks(document)
    rows = [
        [
            one_line(file.path)
            if not file.old_path or file.old_path == file.path
            else f"{one_line(file.old_path)} → {one_line(file.path)}",
            _size(file),
            file.status,
        ]
        for file in document.files
    ]
    if rows:
        yield from table(["FILE", "LINES", "STATUS"], rows, right=frozenset({1}), room=columns())
    added, gone = (sum(n or 0 for n in numbers) for numbers in (_all(document, "insertions"), _all(document, "deletions")))
    yield f"{plural(len(document.files), 'file')}, +{added} -{gone}"


def _all(document: DiffDocument, field: str) -> list[int | None]:
    return [file.insertions if field == "insertions" else file.deletions for file in document.files]


def _size(file: FileView) -> str:
    return "binary" if file.binary else f"+{file.insertions or 0} -{file.deletions or 0}"


@click.command()
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@with_json
@with_home
def approve(home: Home, as_json: bool, tasks: tuple[str, ...]) -> None:
    """Say that a diff is good. `merge` then lands it; nothing is merged before.

    \b
    Example:  stationmaster approve fix-rounding && stationmaster merge fix-rounding
    """
    rows = [station(home).approve(task) for task in tasks]
    if as_json:
        print_json(rows[0] if len(rows) == 1 else rows)
        return
    for row in rows:
        say(f"{one_line(row.id)} is approved; `stationmaster merge {one_line(row.id)}{home.option()}` lands it")


@click.command()
@click.argument("task")
@click.option("--comment", default="", metavar="TEXT", help="What is wrong: the task is tried again in a new attempt that opens with it.")
@with_json
@with_home
def reject(home: Home, as_json: bool, task: str, comment: str) -> None:
    """Refuse a diff. With a comment the agent tries again, from the target branch as it is now; without one the task ends as
    `rejected`.

    \b
    Example:  stationmaster reject fix-rounding --comment "keep the old signature"
    """
    tell(station(home).reject(task, comment), as_json)
