"""Who may work on which task: the claim, its lease and its fencing token.

A task is worked on by whoever made its last claim, and by nobody else. `held` is the test that every write of a worker passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from orchestrator.errors import LeaseLost
from orchestrator.eventlog import Transaction
from orchestrator.events import AttemptResumed
from orchestrator.queue.token_counts import countable
from orchestrator.queue.transitions import end_attempt, move
from orchestrator.store import Row, row, rows
from orchestrator.task import LEASED, SATISFIED, TaskSpec

IDLE_RESUMPTIONS = 3
"""Resumptions without a completed step in between, after which a task is taken for poison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on a task for as long as its lease is renewed.

    `attempt` counts from 1. `fence` rises with every claim of the task. `resumed` is true when the same attempt was begun
    before: then `steps` steps are in the trajectory already, and `workspace` and `branch` are those of the
    attempt, or None when it was interrupted before it had one.
    """

    task: str
    attempt: int
    fence: int
    owner: str
    spec: TaskSpec
    resumed: bool
    steps: int
    output_tokens: int
    decode_s: float | None
    workspace: str | None
    branch: str | None
    snapshot_commit: str | None


CAN_START = f"""
    (not_before IS NULL OR not_before <= :now)
    AND (state = 'interrupted'
         OR NOT EXISTS (SELECT 1 FROM dependency JOIN task AS needed ON needed.id = dependency.needs
                         WHERE dependency.task = task.id
                           AND needed.state NOT IN ({", ".join(f"'{state}'" for state in sorted(SATISFIED))})))
"""  # noqa: S608 - our own words only

_NEXT = f"""
    SELECT * FROM task
     WHERE state IN ('queued', 'interrupted') AND {CAN_START}
     ORDER BY priority DESC, seq
     LIMIT 1
"""  # noqa: S608 - our own words only


def claim_next(tx: Transaction, owner: str, lease_s: float) -> Claim | None:
    """The task whose turn it is, moved to `admitted`; poison on the way is moved to `quarantined`."""
    while (found := row(tx.db, _NEXT, {"now": tx.now})) is not None:
        if found["state"] == "interrupted" and not found["forgiven"] and _idle_resumptions(tx, found) >= IDLE_RESUMPTIONS:
            _quarantine_poison(tx, found["id"])
            continue
        _take(tx, found["id"], owner, tx.now + lease_s)
        if found["state"] == "interrupted":
            _resume_attempt(tx, found["id"], found["attempt"], counted=not found["forgiven"])
        else:
            _begin_attempt(tx, found["id"])
        return _claim(tx, found["id"], resumed=found["state"] == "interrupted")
    return None


def held(tx: Transaction, claim: Claim) -> Row:
    """The claim's task, as long as nobody else has it; LeaseLost otherwise. What is written after it in the same transaction is safe."""
    found = row(
        tx.db,
        "SELECT * FROM task WHERE id = ? AND attempt = ? AND fence = ? AND owner = ?",
        (claim.task, claim.attempt, claim.fence, claim.owner),
    )
    if found is None:
        raise LeaseLost(f"task {claim.task}: attempt {claim.attempt} under fencing token {claim.fence} is no longer ours")
    return found


def renew(tx: Transaction, live: Sequence[Claim], lease_s: float) -> list[Claim]:
    """Prolongs the leases of the live claims, then moves tasks whose lease has run out to `interrupted`; the claims that are lost.

    Prolonged first, and in one transaction: leases are in wall-clock, and after a suspended machine or a step of the clock all of
    them have run out, those of attempts at work too.
    """
    sql = "UPDATE task SET lease_until = ? WHERE id = ? AND attempt = ? AND fence = ? AND owner = ? RETURNING id"
    until = tx.now + lease_s
    lost = [claim for claim in live if not rows(tx.db, sql, (until, claim.task, claim.attempt, claim.fence, claim.owner))]
    interrupt(tx, "lease_until < ?", tx.now, "the lease ran out")
    return lost


def interrupt(tx: Transaction, condition: str, value: object, reason: str, *, forgiven: bool = False) -> list[str]:
    """Moves the leased tasks that meet the condition (our own SQL, with one parameter) to `interrupted`; their ids.

    One that was only `admitted` is forgiven always: nothing of it had begun, so it cannot be what ended the station.
    """
    leased = ", ".join(f"'{state}'" for state in sorted(LEASED))
    sql = f"SELECT id, state FROM task WHERE state IN ({leased}) AND {condition} ORDER BY seq"  # noqa: S608 - our own words only
    found = rows(tx.db, sql, (value,))
    for task in found:
        move(tx, task["id"], "interrupted", reason)
        if forgiven or task["state"] == "admitted":
            forgive(tx, task["id"])
    return [task["id"] for task in found]


def forgive(tx: Transaction, task: str) -> None:
    """The next resumption is nobody's fault and is not counted."""
    tx.db.execute("UPDATE task SET forgiven = 1 WHERE id = ?", (task,))


def _take(tx: Transaction, task: str, owner: str, until: float) -> None:
    tx.db.execute(
        "UPDATE task SET owner = ?, lease_until = ?, fence = fence + 1, not_before = NULL, forgiven = 0 WHERE id = ?", (owner, until, task)
    )


def _begin_attempt(tx: Transaction, task: str) -> None:
    tx.db.execute("UPDATE task SET attempt = attempt + 1 WHERE id = ?", (task,))
    tx.db.execute(
        """
        INSERT INTO attempt (task, number, base_commit, started_at)
        SELECT id, attempt, json_extract(spec, '$.base_commit'), ? FROM task WHERE id = ?
        """,
        (tx.now, task),
    )
    move(tx, task, "admitted")


def _resume_attempt(tx: Transaction, task: str, attempt: int, *, counted: bool) -> None:
    resumed = rows(
        tx.db,
        """
        UPDATE attempt SET resumptions = resumptions + :counted, idle_resumptions = idle_resumptions + :counted
         WHERE task = :task AND number = :attempt
        RETURNING steps, resumptions
        """,
        {"counted": int(counted), "task": task, "attempt": attempt},
    )[0]
    move(tx, task, "admitted")
    tx.append(task, attempt, AttemptResumed(step=resumed["steps"], resumption=resumed["resumptions"]))


def _idle_resumptions(tx: Transaction, task: Row) -> int:
    found = row(tx.db, "SELECT idle_resumptions FROM attempt WHERE task = ? AND number = ?", (task["id"], task["attempt"]))
    return found["idle_resumptions"] if found else 0


def _quarantine_poison(tx: Transaction, task: str) -> None:
    message = f"resumed {IDLE_RESUMPTIONS} times without completing a step"
    end_attempt(tx, task, "interrupted", "poison", message)
    move(tx, task, "quarantined", message)


def _claim(tx: Transaction, task: str, *, resumed: bool) -> Claim:
    found = rows(
        tx.db,
        "SELECT task.*, attempt.* FROM task JOIN attempt ON attempt.task = task.id AND attempt.number = task.attempt WHERE task.id = ?",
        (task,),
    )[0]
    return Claim(
        task=task,
        attempt=found["number"],
        fence=found["fence"],
        owner=found["owner"],
        spec=msgspec.json.decode(found["spec"], type=TaskSpec),
        resumed=resumed,
        steps=found["steps"],
        output_tokens=countable(found["output_tokens"] or 0),
        decode_s=found["decode_s"],
        workspace=found["workspace"],
        branch=found["branch"],
        snapshot_commit=found["snapshot_commit"],
    )
