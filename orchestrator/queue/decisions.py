"""What a person decides about a task. A decision that does not fit the task's state is a `UserError` that says what does."""

from __future__ import annotations

from orchestrator.errors import UserError
from orchestrator.eventlog import Journal, Transaction, storable_text
from orchestrator.events import Approved, Commented
from orchestrator.queue.transitions import end_attempt, move, task_row
from orchestrator.store import Row, row
from orchestrator.task import ENDED, REVIEWABLE, TRANSITIONS, State

TEXT_LIMIT = 100_000
"""Characters of a comment or a message: an agent's window is short, and a file belongs into the repository."""


class Decisions:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def cancel(self, task: str) -> None:
        """To `cancelled`, also while an agent is at work: its next write gets LeaseLost. Watch for StateChanged and stop it at once."""

        def work(tx: Transaction) -> None:
            _expect(task_row(tx.db, task), "cancelled", "cancel")
            end_attempt(tx, task, "cancelled")
            move(tx, task, "cancelled", "cancelled by hand")

        await self._journal.write(work)

    async def retry(self, task: str, comment: str = "", *, base_commit: str | None = None) -> None:
        """An ended task is queued again for a new attempt, with its faults forgiven; the comment goes to the agent.

        The attempt begins at `base_commit`; None: where the one before began.
        """

        def work(tx: Transaction) -> None:
            current = task_row(tx.db, task)
            if current["state"] not in ENDED:
                raise UserError(f"task {task} is {current['state']}, it has not ended", hint=way_on(task, current["state"]))
            _expect(current, "queued", "retry")
            _say(tx, current, comment)
            _requeue(tx, current, "retried by hand", base_commit)

        await self._journal.write(work)

    async def approve(self, task: str) -> None:
        """The present snapshot may be merged; `verified` becomes `in-review`. UserError when there is no snapshot."""

        def work(tx: Transaction) -> None:
            current = task_row(tx.db, task)
            if current["state"] not in REVIEWABLE:
                raise UserError(f"task {task} is {current['state']}, not waiting for review", hint=way_on(task, current["state"]))
            commit = snapshot_commit(tx, current)
            if commit is None:
                raise UserError(f"task {task} has no snapshot to approve", hint=f"`stationmaster retry {task}` makes a new attempt")
            if current["state"] == "verified":
                move(tx, task, "in-review")
            tx.db.execute("UPDATE task SET approved_commit = ? WHERE id = ?", (commit, task))
            tx.append(task, current["attempt"], Approved(snapshot_commit=commit))

        await self._journal.write(work)

    async def reject(self, task: str, comment: str = "", *, base_commit: str | None = None) -> None:
        """With a comment: queued as a new attempt from `base_commit` (see `retry`), which hears the comment. Without: `rejected`."""

        def work(tx: Transaction) -> None:
            current = task_row(tx.db, task)
            _expect(current, "rejected", "reject")
            if comment:
                _say(tx, current, comment)
                _requeue(tx, current, "rejected with a comment", base_commit)
            else:
                move(tx, task, "rejected", "rejected by hand")

        await self._journal.write(work)

    async def say(self, task: str, text: str) -> None:
        """The agent hears it after its present step, or when it starts. UserError for a task that has ended."""

        def work(tx: Transaction) -> None:
            current = task_row(tx.db, task)
            if current["state"] in ENDED or current["state"] == "merging":
                hint = f'`stationmaster retry {task} --comment "…"` starts a new attempt that hears it'
                raise UserError(f"task {task} is {current['state']}: no agent works on it", hint=hint)
            if not text.strip():
                raise UserError("there is nothing to say", hint="give the agent a text")
            _say(tx, current, text)

        await self._journal.write(work)

    async def look(self, task: str) -> None:
        """A person has looked at the present snapshot (a later diff can start there); `verified` becomes `in-review`.

        Nothing happens while there is no snapshot.
        """

        def work(tx: Transaction) -> None:
            current = task_row(tx.db, task)
            commit = snapshot_commit(tx, current)
            if commit is None:
                return
            tx.db.execute(
                """
                INSERT INTO look (task, snapshot_commit, at) VALUES (?, ?, ?)
                ON CONFLICT (task) DO UPDATE SET snapshot_commit = excluded.snapshot_commit, at = excluded.at
                """,
                (task, commit, tx.now),
            )
            if current["state"] == "verified":
                move(tx, task, "in-review")

        await self._journal.write(work)


def snapshot_commit(tx: Transaction, task: Row) -> str | None:
    """The newest attempt's last snapshot; None when it has none."""
    found = row(tx.db, "SELECT snapshot_commit FROM attempt WHERE task = ? AND number = ?", (task["id"], task["attempt"]))
    return found["snapshot_commit"] if found else None


def _expect(task: Row, new: State, command: str) -> None:
    if new not in TRANSITIONS[task["state"]]:
        raise UserError(f"task {task['id']} is {task['state']}: nothing to {command}", hint=way_on(task["id"], task["state"]))


def way_on(task: str, state: State) -> str:
    """What a person can do about a task in that state: the hint beside a refused command."""
    match state:
        case "merged":
            return "it has landed: `git revert` takes it back, `stationmaster add` queues what is missing"
        case "merging":
            return "its merge is under way: wait until it has landed or was refused"
        case "verified" | "in-review":
            return f"it waits for you: `stationmaster diff {task}`, then `approve` or `reject`"
        case "conflicted":
            return f"`stationmaster retry {task}` starts again from the branch as it is now"
        case "stuck" | "failed" | "cancelled" | "rejected" | "quarantined":
            return f"`stationmaster retry {task}` starts a new attempt"
        case _:
            return f"it is not done yet: `stationmaster show {task}` tells where it is, `stationmaster cancel {task}` stops it"


def _say(tx: Transaction, task: Row, text: str) -> None:
    """Keeps the words for the agent; an empty text says nothing."""
    if not text.strip():
        return
    if len(text) > TEXT_LIMIT:
        raise UserError(f"a text of {len(text)} characters is too long (limit {TEXT_LIMIT})", hint="put it into a file of the repository")
    if storable_text(text) != text:
        raise UserError("the text holds a NUL or a lone surrogate, which is no text", hint="remove the character")
    tx.db.execute("INSERT INTO message (task, said_at, text) VALUES (?, ?, ?)", (task["id"], tx.now, text))
    tx.append(task["id"], task["attempt"] or None, Commented(text=text))


def _requeue(tx: Transaction, task: Row, reason: str, base_commit: str | None) -> None:
    """For a new attempt that starts with a clean record: a person vouches for it."""
    end_attempt(tx, task["id"], "given up")
    move(tx, task["id"], "queued", reason)
    tx.db.execute(
        """
        UPDATE task SET faults = 0, setbacks = 0, not_before = NULL, forgiven = 0,
                        spec = json_set(spec, '$.base_commit', coalesce(?, json_extract(spec, '$.base_commit')))
         WHERE id = ?
        """,
        (base_commit, task["id"]),
    )
