"""Tasks into the queue: all of them or none."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from orchestrator.errors import UserError
from orchestrator.eventlog import Transaction, storable_text
from orchestrator.events import TaskAdded
from orchestrator.store import row, rows
from orchestrator.task import TaskSpec

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def id_problem(task: str) -> str | None:
    """Why the id cannot name a folder, a file and a git ref, as it will; None when it can."""
    if not _ID.fullmatch(task):
        return "an id is 1 to 64 of the characters A-Z a-z 0-9 . _ -"
    if task[0] in ".-":
        return "an id begins with a letter, a digit or _"
    if ".." in task or task.endswith((".", ".lock")):
        return "an id holds no `..` and ends neither with `.` nor with `.lock`, which git refuses in a branch"
    return None


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A ring of tasks that wait for each other, each for the one behind it, closed by its first; None when there is none."""
    try:
        graphlib.TopologicalSorter(after).prepare()
    except graphlib.CycleError as error:
        ring: list[str] = error.args[1]  # the documented place; each is waited for by the next
        return ring[::-1]
    return None


def describe_cycle(ring: Sequence[str]) -> str:
    return " after ".join(ring)


def submit(tx: Transaction, specs: Sequence[TaskSpec]) -> None:
    """Queues the tasks; UserError, for the first thing that is wrong, leaves none."""
    for spec in specs:
        _expect_sound(spec)
    _expect_new(tx, [spec.id for spec in specs])
    ring = find_cycle({spec.id: spec.after for spec in specs})
    if ring is not None:
        raise UserError(f"tasks wait for each other: {describe_cycle(ring)}", hint="take one of them out of an `after`")
    for spec in specs:
        _insert(tx, spec)
    for spec in specs:
        _depend(tx, spec)


def _expect_sound(spec: TaskSpec) -> None:
    problem = id_problem(spec.id)
    if problem is not None:
        raise UserError(f"{spec.id!r} cannot be a task's id", hint=problem)
    for name, text in _texts(spec):
        if storable_text(text) != text:
            raise UserError(f"task {spec.id!r}: {name} holds a NUL or a lone surrogate, which is no text", hint="remove the character")


def _texts(spec: TaskSpec) -> Iterable[tuple[str, str]]:
    yield from (("id", spec.id), ("title", spec.title), ("prompt", spec.prompt), ("repo", spec.repo), ("base_commit", spec.base_commit))
    yield from (("target_branch", spec.target_branch or ""), ("agent", spec.agent))
    yield from (("checks", check) for check in spec.checks)
    yield from (("after", needed) for needed in spec.after)


def _expect_new(tx: Transaction, tasks: Sequence[str]) -> None:
    """Ids that differ in case alone count as the same: they name folders, and some file systems take those for one."""
    seen: set[str] = set()
    for task in tasks:
        if task.lower() in seen:
            raise UserError(f"two tasks have the id {task}", hint="ids are unique within a home, whatever their case")
        seen.add(task.lower())
        found = row(tx.db, "SELECT id FROM task WHERE id = ? COLLATE NOCASE", (task,))
        if found:
            hint = f"choose another id, or `stationmaster retry {found['id']}`"
            raise UserError(f"task {found['id']} exists already; nothing was queued", hint=hint)


def _insert(tx: Transaction, spec: TaskSpec) -> None:
    tx.db.execute(
        "INSERT INTO task (id, spec, priority, state, state_at) VALUES (?, ?, ?, 'queued', ?)",
        (spec.id, msgspec.json.encode(spec).decode(), spec.priority, tx.now),
    )
    tx.append(spec.id, None, TaskAdded(title=spec.title))


def _depend(tx: Transaction, spec: TaskSpec) -> None:
    for needed in dict.fromkeys(spec.after):
        if not row(tx.db, "SELECT 1 FROM task WHERE id = ?", (needed,)):
            raise UserError(f"task {spec.id} comes after {needed}, which does not exist", hint="add that one first, or in the same file")
        rows(tx.db, "INSERT INTO dependency (task, needs) VALUES (?, ?)", (spec.id, needed))
