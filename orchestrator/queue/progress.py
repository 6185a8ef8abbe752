"""Facts of an attempt, folded into its row as they are stored: the views never add up a log."""

from __future__ import annotations

from typing import TypeAlias

from agents.events import AgentFact, ModelAsked, ModelReplied, ModelRetried, Noted, StepCompleted, ToolFinished, ToolStarted
from orchestrator.eventlog import Transaction
from orchestrator.events import CheckFinished, SnapshotTaken, WorkspaceCreated
from orchestrator.queue.claims import Claim
from orchestrator.queue.token_counts import countable, countable_sql
from orchestrator.store import rows
from orchestrator.task import Activity

AttemptFact: TypeAlias = AgentFact | WorkspaceCreated | SnapshotTaken | CheckFinished


def record_fact(tx: Transaction, claim: Claim, fact: AttemptFact) -> None:
    """Stores the fact and folds it in. The caller has made sure that the claim holds."""
    match tx.append(claim.task, claim.attempt, fact):
        case ModelAsked(step=step):
            _set(tx, claim, "step = :step", step=step)
            _show(tx, claim, "model")
        case ModelRetried():
            _show(tx, claim, "waiting-engine")
        case ModelReplied() as reply:
            _add_reply(tx, claim, reply)
        case ToolStarted(summary=summary):
            _set(tx, claim, "last_tool = :summary", summary=summary)
            _show(tx, claim, "tool")
        case ToolFinished(summary=summary, ok=ok):
            _set(tx, claim, "last_tool = :summary", summary=summary if ok else f"✗ {summary}")
        case StepCompleted(step=step):
            _complete_step(tx, claim, step)
        case WorkspaceCreated(workspace=workspace, branch=branch):
            _set(tx, claim, "workspace = :workspace, branch = :branch", workspace=workspace, branch=branch)
        case SnapshotTaken() as snapshot:
            _set_snapshot(tx, claim, snapshot)
        case CheckFinished() as check:
            _set_check(tx, claim, check)
            _show(tx, claim, "checks")
        case Noted():
            pass  # read from the log when a person opens the task
        case other:
            raise TypeError(f"{type(other).__name__} is not a fact of an attempt")


def _set(tx: Transaction, claim: Claim, assignments: str, **values: object) -> None:
    sql = f"UPDATE attempt SET {assignments} WHERE task = :task AND number = :number"  # noqa: S608 - our own words only
    rows(tx.db, sql, {**values, "task": claim.task, "number": claim.attempt})


def _show(tx: Transaction, claim: Claim, activity: Activity) -> None:
    tx.db.execute("UPDATE task SET activity = ? WHERE id = ?", (activity, claim.task))


def _add_reply(tx: Transaction, claim: Claim, reply: ModelReplied) -> None:
    """Adds what the engine reported. What it did not report leaves the sum as it is: None stays None. No sum leaves what can be summed."""
    _set(
        tx,
        claim,
        f"""
        input_tokens  = {countable_sql("coalesce(input_tokens + :input, :input, input_tokens)")},
        cached_tokens = {countable_sql("coalesce(cached_tokens + :cached, :cached, cached_tokens)")},
        output_tokens = {countable_sql("coalesce(output_tokens + :output, :output, output_tokens)")},
        decode_s      = coalesce(decode_s + :decode_s, :decode_s, decode_s)
        """,
        input=countable(reply.input_tokens),
        cached=countable(reply.cached_tokens),
        output=countable(reply.output_tokens),
        decode_s=reply.decode_s,
    )


def _complete_step(tx: Transaction, claim: Claim, step: int) -> None:
    """Progress: earlier resumptions and setbacks no longer count, and what this claim was told before has been heard."""
    advanced = rows(
        tx.db,
        "UPDATE attempt SET steps = ?, idle_resumptions = 0 WHERE task = ? AND number = ? AND steps < ? RETURNING steps",
        (step, claim.task, claim.attempt, step),
    )
    if advanced:
        tx.db.execute("UPDATE task SET setbacks = 0 WHERE id = ?", (claim.task,))
    tx.db.execute(
        "UPDATE message SET heard_at = ? WHERE task = ? AND heard_at IS NULL AND taken_fence = ?", (tx.now, claim.task, claim.fence)
    )


def _set_snapshot(tx: Transaction, claim: Claim, snapshot: SnapshotTaken) -> None:
    _set(
        tx,
        claim,
        "snapshot_commit = :commit, files_changed = :files, insertions = :insertions, deletions = :deletions",
        commit=snapshot.commit,
        files=snapshot.files_changed,
        insertions=snapshot.insertions,
        deletions=snapshot.deletions,
    )


def _set_check(tx: Transaction, claim: Claim, check: CheckFinished) -> None:
    tx.db.execute(
        """
        INSERT INTO check_result (task, attempt, command, exit_code, seconds, output) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (task, attempt, command)
        DO UPDATE SET exit_code = excluded.exit_code, seconds = excluded.seconds, output = excluded.output
        """,
        (claim.task, claim.attempt, check.command, check.exit_code, check.seconds, check.output),
    )
