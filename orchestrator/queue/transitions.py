"""The one place where a task changes its state, held to the table in `task`."""

from __future__ import annotations

from orchestrator.errors import IllegalTransition, UserError
from orchestrator.eventlog import Transaction, storable_text
from orchestrator.events import AttemptEnded, StateChanged
from orchestrator.store import Database, Row, row, rows
from orchestrator.task import LEASED, TRANSITIONS, Activity, FailureKind, State

_UNAPPROVED: frozenset[State] = frozenset({"queued", "rejected", "cancelled"})
_MESSAGE_LIMIT = 8_000


def move(tx: Transaction, task: str, new: State, reason: str = "") -> None:
    """Writes the state and StateChanged. Outside the leased states the lease is gone; back in the queue the approval is.

    IllegalTransition, with nothing written, when the table does not allow it. `not_before` is the caller's business.
    """
    current = task_row(tx.db, task)
    old: State = current["state"]
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"task {task} cannot go from {old} to {new}")
    sets = ["state = :new", "state_at = :now", "activity = :activity"]
    if new not in LEASED:
        sets += ["owner = NULL", "lease_until = NULL"]
    if new in _UNAPPROVED:
        sets.append("approved_commit = NULL")
    values: dict[str, object] = {"new": new, "now": tx.now, "activity": _activity(new), "task": task}
    rows(tx.db, f"UPDATE task SET {', '.join(sets)} WHERE id = :task", values)  # noqa: S608 - our own words only
    tx.append(task, current["attempt"] or None, StateChanged(old=old, new=new, reason=reason))
    if new == "running":
        _count_parallel(tx.db)


def end_attempt(tx: Transaction, task: str, outcome: str, failure: FailureKind | None = None, message: str = "") -> None:
    """Closes the newest attempt with AttemptEnded; nothing when there is none or it has ended already."""
    message = storable_text(message)
    if len(message) > _MESSAGE_LIMIT:
        message = message[:_MESSAGE_LIMIT] + " …"
    ended = rows(
        tx.db,
        """
        UPDATE attempt
           SET ended_at = :now, outcome = :outcome, failure_kind = :failure, failure_message = :message
         WHERE task = :task AND ended_at IS NULL
           AND number = (SELECT attempt FROM task WHERE id = :task)
        RETURNING number
        """,
        {"now": tx.now, "outcome": outcome, "failure": failure, "message": message or None, "task": task},
    )
    if ended:
        tx.append(task, ended[0]["number"], AttemptEnded(outcome=outcome, failure=failure, message=message))


def task_row(db: Database, task: str) -> Row:
    """The task's row in the table; UserError when there is none."""
    found = row(db, "SELECT * FROM task WHERE id = ?", (task,))
    if found is None:
        raise UserError(f"there is no task {task}", hint=_nearest(db, task))
    return found


def _nearest(db: Database, task: str) -> str:
    import difflib  # only on the way to an error

    close = difflib.get_close_matches(task, [it["id"] for it in rows(db, "SELECT id FROM task")], n=1)
    return f"did you mean {close[0]}?" if close else "`stationmaster list` shows them all"


def _activity(new: State) -> Activity | None:
    match new:
        case "admitted" | "preparing":
            return "workspace"
        case "running":
            return "model"
        case "claimed-done":
            return "checks"
        case _:
            return None


def _count_parallel(db: Database) -> None:
    """Keeps the most tasks that were in `running` at one moment, for the totals."""
    db.execute(
        """
        INSERT INTO setting (key, value) SELECT 'max_parallel', count(*) FROM task WHERE state = 'running'
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
         WHERE CAST(excluded.value AS INTEGER) > CAST(setting.value AS INTEGER)
        """
    )
