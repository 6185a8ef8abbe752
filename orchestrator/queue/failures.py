"""What follows when an attempt cannot go on: another attempt, the same one later, or an end.

Only faults of the agent or the task use attempts up. A bug of ours counts as one too: it is likely to come back, and its
traceback should be seen soon. An engine that is down, a full disk or a broken workspace are setbacks: they use nothing up, but
many in a row without a completed step are poison as well.
"""

from __future__ import annotations

from orchestrator.eventlog import Transaction
from orchestrator.queue.claims import Claim, forgive
from orchestrator.queue.transitions import end_attempt, move
from orchestrator.store import rows
from orchestrator.task import FailureKind, State

SETBACKS = 5
"""Setbacks in a row without a completed step, after which a task is quarantined."""
FAULT_BACKOFF_S = 1.0
SETBACK_BACKOFF_S = 15.0
BACKOFF_LIMIT_S = 300.0


def backoff_s(first_s: float, failures: int) -> float:
    """Seconds to wait after that many failures in a row (from 1): doubled each time, up to a limit."""
    return min(BACKOFF_LIMIT_S, first_s * 2.0 ** min(failures - 1, 30))


def fail_attempt(tx: Transaction, claim: Claim, kind: FailureKind, message: str, outcome: str) -> State:
    """Counts the failure and moves the task; the state that follows. The caller has made sure that the claim holds."""
    match kind:
        case "checks" | "limit" | "stuck" | "model" | "bug" | "conflict" | "poison":
            return _count_fault(tx, claim, kind, message, outcome)
        case "engine" | "host" | "workspace":
            return _count_setback(tx, claim, kind, message, outcome)


def _count_fault(tx: Transaction, claim: Claim, kind: FailureKind, message: str, outcome: str) -> State:
    counted = rows(tx.db, "UPDATE task SET faults = faults + 1 WHERE id = ? RETURNING faults, state", (claim.task,))[0]
    faults: int = counted["faults"]
    end_attempt(tx, claim.task, outcome, kind, message)
    if faults < claim.spec.attempts:
        move(tx, claim.task, "queued", f"{kind}: attempt {faults} of {claim.spec.attempts} is used up")
        _wait(tx, claim.task, backoff_s(FAULT_BACKOFF_S, faults))
        return "queued"
    new: State = "stuck" if kind == "stuck" and counted["state"] == "running" else "failed"
    move(tx, claim.task, new, _line(message))
    return new


def _count_setback(tx: Transaction, claim: Claim, kind: FailureKind, message: str, outcome: str) -> State:
    setbacks: int = rows(tx.db, "UPDATE task SET setbacks = setbacks + 1 WHERE id = ? RETURNING setbacks", (claim.task,))[0]["setbacks"]
    reason = f"{kind}: {_line(message)}"
    if setbacks >= SETBACKS:
        end_attempt(tx, claim.task, outcome, kind, message)
        move(tx, claim.task, "interrupted", reason)
        move(tx, claim.task, "quarantined", f"{setbacks} setbacks in a row without a completed step")
        return "quarantined"
    if kind == "workspace":
        end_attempt(tx, claim.task, outcome, kind, message)
        move(tx, claim.task, "queued", reason)
    else:
        move(tx, claim.task, "interrupted", reason)
        forgive(tx, claim.task)
    _wait(tx, claim.task, backoff_s(SETBACK_BACKOFF_S, setbacks))
    return "queued" if kind == "workspace" else "interrupted"


def _wait(tx: Transaction, task: str, seconds: float) -> None:
    tx.db.execute("UPDATE task SET not_before = ? WHERE id = ?", (tx.now + seconds, task))


def _line(message: str) -> str:
    """The message's last line that says something, short enough for a row: a traceback ends with its cause."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
