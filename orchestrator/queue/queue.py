"""The durable queue, as the scheduler and the workers use it.

A person's commands are in `decisions`, merges in `merge_records`, reads in `orchestrator.lookups`. Every write of a worker names its `Claim` and holds
only while (task, attempt, fence, owner) are still those in the file: otherwise `LeaseLost`, and nothing was written.
Facts go into the same transaction as the state they describe.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.errors import IllegalTransition
from orchestrator.eventlog import Journal, Transaction
from orchestrator.queue.adding import submit
from orchestrator.queue.claims import Claim, claim_next, forgive, held, interrupt, renew
from orchestrator.queue.failures import fail_attempt
from orchestrator.queue.progress import AttemptFact, record_fact
from orchestrator.queue.transitions import end_attempt, move
from orchestrator.store import rows
from orchestrator.task import LEASED, FailureKind, State, TaskSpec


class Queue:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    # the scheduler

    async def add(self, specs: Sequence[TaskSpec]) -> None:
        """Queues all of them or none. UserError for an id that exists, an unknown `after`, a cycle, or text that cannot be stored."""
        await self._journal.write(lambda tx: submit(tx, specs))

    async def claim(self, owner: str, lease_s: float) -> Claim | None:
        """The task whose turn it is, moved to `admitted`; None when none may start now.

        Highest priority first, then the order of submission, among those whose back-off is over and whose dependencies are satisfied
        (see `task.SATISFIED`). A queued task gets a new attempt; an interrupted one goes on with its own. Attempts and resumptions
        are counted here, in this transaction. An interrupted task that was resumed three times without completing a
        step is moved to `quarantined` instead. `owner` is an incarnation: a name that no earlier process has used.
        """
        return await self._journal.write(lambda tx: claim_next(tx, owner, lease_s))

    async def interrupt_orphans(self, owner: str) -> list[str]:
        """At start: moves every task that another incarnation holds to `interrupted`, without waiting for its lease; their ids."""
        return await self._journal.write(lambda tx: interrupt(tx, "owner <> ?", owner, "the station ended while it was at work"))

    async def release_all(self, owner: str) -> list[str]:
        """At a planned stop, after the workers have ended: like `release` for whatever this incarnation still holds; their ids."""
        return await self._journal.write(lambda tx: interrupt(tx, "owner = ?", owner, "the station stops", forgiven=True))

    # the runner

    async def renew(self, live: Sequence[Claim], lease_s: float) -> list[Claim]:
        """Prolongs the leases of attempts at work to `lease_s` from now; those of `live` that are no longer ours: stop them.

        Other tasks whose lease has run out, a stalled incarnation's or a worker's that has gone, move to `interrupted`.
        """
        return await self._journal.write(lambda tx: renew(tx, live, lease_s))

    # the worker that holds the claim

    async def move(self, claim: Claim, new: State, reason: str = "") -> None:
        """To `preparing`, `running` or `claimed-done` (or back to `running`). LeaseLost; IllegalTransition for others."""

        def work(tx: Transaction) -> None:
            held(tx, claim)
            if new not in LEASED:
                raise IllegalTransition(f"task {claim.task}: a worker moves no task to {new}; it verifies, fails or releases it")
            move(tx, claim.task, new, reason)

        await self._journal.write(work)

    async def record(self, claim: Claim, facts: Sequence[AttemptFact]) -> None:
        """Stores facts and folds them into the attempt's sums (tokens, steps, decode seconds, last tool, snapshot, checks, workspace)."""

        def work(tx: Transaction) -> None:
            held(tx, claim)
            for fact in facts:
                record_fact(tx, claim, fact)

        await self._journal.write(work)

    async def take_messages(self, claim: Claim) -> list[str]:
        """What people said to the agent and it has not heard, oldest first.

        Each is handed out once. It counts as heard at the next `StepCompleted`; if the attempt ends or is interrupted before that, the
        claim that follows gets it again: around a crash a word may come twice, but none is lost. So record a step's
        StepCompleted before taking messages, and the messages taken then are settled by the step that answers them.
        """

        def work(tx: Transaction) -> list[str]:
            held(tx, claim)
            taken = rows(
                tx.db,
                """
                UPDATE message SET taken_fence = :fence
                 WHERE task = :task AND heard_at IS NULL AND taken_fence IS NOT :fence
                RETURNING id, text
                """,
                {"task": claim.task, "fence": claim.fence},
            )
            return [message["text"] for message in sorted(taken, key=lambda message: message["id"])]

        return await self._journal.write(work)

    async def verify(self, claim: Claim, outcome: str = "submitted") -> None:
        """From `claimed-done` to `verified`: the attempt ends well and the lease with it. Stores AttemptEnded."""

        def work(tx: Transaction) -> None:
            held(tx, claim)
            end_attempt(tx, claim.task, outcome)
            move(tx, claim.task, "verified")

        await self._journal.write(work)

    async def fail(self, claim: Claim, kind: FailureKind, message: str, *, outcome: str) -> State:
        """The attempt could not go on; the state that follows. It stores AttemptEnded where the attempt has ended.

        checks, limit, stuck, model, bug, conflict, poison: a fault. The attempt has ended; `queued` for another one after a back-off while
        fewer than `spec.attempts` faults are counted, else `failed` (`stuck` for stuck, out of `running`).
        engine, host: `interrupted`: the same attempt goes on after a back-off; no fault, no resumption is counted.
        workspace: `queued`: a new attempt, in a new workspace, after a back-off; no fault is counted.
        Of such setbacks without a completed step in between the fifth is `quarantined`.
        """

        def work(tx: Transaction) -> State:
            held(tx, claim)
            return fail_attempt(tx, claim, kind, message, outcome)

        return await self._journal.write(work)

    async def release(self, claim: Claim, reason: str = "the station stops") -> None:
        """A planned stop: to `interrupted`; the attempt goes on later, and that is not counted as a resumption."""

        def work(tx: Transaction) -> None:
            held(tx, claim)
            move(tx, claim.task, "interrupted", reason)
            forgive(tx, claim.task)

        await self._journal.write(work)
