"""`workspace list` and `workspace path`."""

from __future__ import annotations

import click

from orchestrator.cli.lazy import Entry, LazyGroup, Section
from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import columns, one_line, paint, print_json, say, table, visible
from orchestrator.cli.reading import read
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.views import TaskRow


@click.group(cls=LazyGroup)
def workspace() -> None:
    """Where the agents' files are: a git workspace for each attempt, outside your checkout."""


workspace.sections = (
    Section(
        "Commands",
        (
            Entry("list", "workspace", "list_workspaces", "The workspaces of all tasks"),
            Entry("path", "workspace", "path", "The folder of one task's workspace"),
        ),
    ),
)


@click.command("list")
@with_json
@with_home
def list_workspaces(home: Home, as_json: bool) -> None:
    """The workspaces of all tasks that have one.

    \b
    Example:  stationmaster workspace list
    """
    rows = [row for row in read(home, lambda reader: reader.tasks()) if row.workspace]
    if as_json:
        print_json([_document(row) for row in rows])
        return
    if not rows:
        say("no task has a workspace yet")
        return
    cells = [[one_line(row.id), row.state, str(row.attempt), visible(row.branch or "—"), visible(row.workspace or "—")] for row in rows]
    lines = table(["TASK", "STATE", "ATTEMPT", "BRANCH", "FOLDER"], cells, right=frozenset({2}), room=columns())
    say(paint(lines[0], "bold"))
    for line in lines[1:]:
        say(line)


@click.command()
@click.argument("task")
@with_json
@with_home
def path(home: Home, as_json: bool, task: str) -> None:
    """The folder of one task's workspace.

    \b
    Example:  cd "$(stationmaster workspace path fix-rounding)"
    """
    row = read(home, lambda reader: reader.task(task)).row
    if row.workspace is None:
        raise UserError(f"{task} has no workspace", hint=f"it is {row.state}; an agent gets one when it starts")
    if as_json:
        print_json(_document(row))
    else:
        say(row.workspace)


def _document(row: TaskRow) -> dict[str, object]:
    return {
        "task": row.id,
        "state": row.state,
        "attempt": row.attempt,
        "branch": row.branch,
        "base_commit": row.base_commit,
        "workspace": row.workspace,
    }
