"""Merges as they are written down: before the branch moves, so that a merge which landed just before a crash is recognised.

    begin → prepared → landed | refused

At a start, `unfinished` gives those that were under way: `prepared` ones may have landed (ask git), the others have not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from orchestrator.errors import IllegalTransition, UserError
from orchestrator.eventlog import Journal, Transaction, storable_text
from orchestrator.events import MergeLanded, MergeRefused
from orchestrator.queue.decisions import snapshot_commit, way_on
from orchestrator.queue.transitions import move, task_row
from orchestrator.store import Database, Row, rows
from orchestrator.task import MERGEABLE, TaskSpec

MergeState = Literal["begun", "prepared", "landed", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRecord:
    """`target_commit` is the branch's tip that the merge was computed on, `commit` the merge itself: None until it is prepared."""

    task: str
    repo: str
    target: str
    snapshot_commit: str
    target_commit: str | None
    commit: str | None
    state: MergeState


class Merges:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def begin(self, task: str) -> MergeRecord:
        """To `merging`, from `in-review` or `conflicted`: what is merged is the snapshot that was approved, and no other.

        UserError when the task cannot be merged now, has no snapshot, is not approved as it is, or has no branch to land on.
        """

        def work(tx: Transaction) -> MergeRecord:
            current = task_row(tx.db, task)
            if current["state"] == "merged":
                raise UserError(f"task {task} is merged already, as {_landed_commit(tx.db, task)}", hint=way_on(task, "merged"))
            if current["state"] not in MERGEABLE:
                raise UserError(f"task {task} is {current['state']} and cannot be merged", hint=way_on(task, current["state"]))
            return _begin(tx, current)

        return await self._journal.write(work)

    async def prepared(self, task: str, *, target_commit: str, commit: str) -> None:
        """Written before the branch is moved. IllegalTransition unless a merge of the task is under way."""

        def work(tx: Transaction) -> None:
            _step(tx, task, "state = 'prepared', target_commit = ?, merge_commit = ?", (target_commit, commit))

        await self._journal.write(work)

    async def landed(self, task: str, commit: str) -> None:
        """To `merged`, with MergeLanded."""

        def work(tx: Transaction) -> None:
            merge = _step(tx, task, "state = 'landed', merge_commit = ?", (commit,))
            tx.append(task, task_row(tx.db, task)["attempt"], MergeLanded(target=merge["target"], commit=commit))
            move(tx, task, "merged")

        await self._journal.write(work)

    async def refused(self, task: str, reason: str, conflicts: Sequence[str] = ()) -> None:
        """To `conflicted` when there are conflicts, else back to `in-review` (the approval stays), with MergeRefused."""

        def work(tx: Transaction) -> None:
            kept = storable_text(reason)
            merge = _step(tx, task, "state = 'refused', reason = ?", (kept,))
            refusal = MergeRefused(target=merge["target"], reason=kept, conflicts=tuple(conflicts))
            tx.append(task, task_row(tx.db, task)["attempt"], refusal)
            move(tx, task, "conflicted" if conflicts else "in-review", kept)

        await self._journal.write(work)


def unfinished(db: Database) -> list[MergeRecord]:
    """Merges that are under way (or were, when the station ended), oldest first."""
    return _records(db, "merge.state IN ('begun', 'prepared')", ())


def _begin(tx: Transaction, task: Row) -> MergeRecord:
    commit = snapshot_commit(tx, task)
    branch = msgspec.json.decode(task["spec"], type=TaskSpec).target_branch
    if commit is None:
        raise UserError(f"task {task['id']} has no snapshot to merge", hint=f"`stationmaster retry {task['id']}` makes a new attempt")
    if task["approved_commit"] != commit:
        what = "is not approved" if task["approved_commit"] is None else "has changed since it was approved"
        hint = f"look at `stationmaster diff {task['id']}`, then `stationmaster approve {task['id']}`"
        raise UserError(f"task {task['id']} {what}", hint=hint)
    if branch is None:
        hint = "HEAD was detached when it was added: give the task a `base` that is a branch"
        raise UserError(f"task {task['id']} names no branch to merge into", hint=hint)
    move(tx, task["id"], "merging", f"into {branch}")
    sql = "INSERT INTO merge (task, begun_at, target, snapshot_commit, state) VALUES (?, ?, ?, ?, 'begun') RETURNING id"
    made = rows(tx.db, sql, (task["id"], tx.now, branch, commit))
    return _records(tx.db, "merge.id = ?", (made[0]["id"],))[0]


def _landed_commit(db: Database, task: str) -> str:
    return rows(db, "SELECT merge_commit FROM merge WHERE task = ? AND state = 'landed'", (task,))[0]["merge_commit"]


def _step(tx: Transaction, task: str, assignments: str, values: tuple[object, ...]) -> Row:
    sql = f"UPDATE merge SET {assignments} WHERE task = ? AND state IN ('begun', 'prepared') RETURNING *"  # noqa: S608 - our own words only
    changed = rows(tx.db, sql, (*values, task))
    if not changed:
        raise IllegalTransition(f"no merge of task {task} is under way")
    return changed[0]


def _records(db: Database, condition: str, values: tuple[object, ...]) -> list[MergeRecord]:
    sql = f"SELECT merge.*, task.spec FROM merge JOIN task ON task.id = merge.task WHERE {condition} ORDER BY merge.id"  # noqa: S608 - our own words only
    return [
        MergeRecord(
            task=found["task"],
            repo=msgspec.json.decode(found["spec"], type=TaskSpec).repo,
            target=found["target"],
            snapshot_commit=found["snapshot_commit"],
            target_commit=found["target_commit"],
            commit=found["merge_commit"],
            state=found["state"],
        )
        for found in rows(db, sql, values)
    ]
