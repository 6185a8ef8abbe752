"""The durable queue, as the scheduler and the workers use it. A person's commands are in `decisions`, merges in `merges`, reads in `lookups`.

Every write of a worker names its `Claim` and holds only while (task, attempt, fence) is still the one in the file: otherwise
`LeaseLost`, and nothing was written. Facts go into the same transaction as the state they describe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agents.events import AgentFact
from orchestrator.eventlog import Journal
from orchestrator.events import CheckFinished, SnapshotTaken, StationFact, WorkspaceCreated
from orchestrator.task import FailureKind, State, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on a task until `lease_until` (seconds since the epoch; heartbeats move it on).

    `attempt` counts from 1. `fence` rises with every claim of the task. `resumed` is true when the same attempt was begun
    before: then `steps` steps are in the trajectory already, and `workspace` and `branch` are those of the
    attempt, or None when it was interrupted before it had one.
    """

    task: str
    attempt: int
    fence: int
    owner: str
    lease_until: float
    spec: TaskSpec
    resumed: bool
    steps: int
    output_tokens: int
    decode_s: float | None
    workspace: str | None
    branch: str | None
    snapshot_commit: str | None


class Queue:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    # the scheduler

    async def add(self, specs: Sequence[TaskSpec]) -> None:
        """Queues all of them or none. UserError for an id that exists, an unknown `after`, a cycle, or text that cannot be stored."""
        raise NotImplementedError

    async def claim(self, owner: str, lease_s: float) -> Claim | None:
        """The task whose turn it is, moved to `admitted`; None when none may start now.

        Highest priority first, then the order of submission, among those whose back-off is over and whose dependencies are satisfied
        (see `claims.SATISFIED`). A queued task gets a new attempt; an interrupted one goes on with its own. Attempts and resumptions
        are counted here, in this transaction. An interrupted task that was resumed three times without completing a
        step is moved to `quarantined` instead. `owner` is an incarnation: a name that no earlier process has used.
        """
        raise NotImplementedError

    async def expire_leases(self) -> list[str]:
        """Moves tasks whose lease has run out to `interrupted`; their ids."""
        raise NotImplementedError

    async def interrupt_orphans(self, owner: str) -> list[str]:
        """At start: moves every task that another incarnation holds to `interrupted`, without waiting for its lease; their ids."""
        raise NotImplementedError

    async def release_all(self, owner: str) -> list[str]:
        """At a planned stop, after the workers have ended: like `release` for whatever this incarnation still holds; their ids."""
        raise NotImplementedError

    # the worker that holds the claim

    async def heartbeat(self, claim: Claim, lease_s: float) -> None:
        """Prolongs the lease to `lease_s` from now. LeaseLost when it is somebody else's."""
        raise NotImplementedError

    async def move(self, claim: Claim, new: State, reason: str = "") -> None:
        """To `preparing`, `running` or `claimed-done` (or back to `running`). LeaseLost, IllegalTransition."""
        raise NotImplementedError

    async def record(self, claim: Claim, facts: Sequence[AgentFact | WorkspaceCreated | SnapshotTaken | CheckFinished]) -> None:
        """Stores facts and folds them into the attempt's sums (tokens, steps, decode seconds, last tool, snapshot, checks, workspace)."""
        raise NotImplementedError

    async def take_messages(self, claim: Claim) -> list[str]:
        """What people said to the agent and it has not heard, oldest first.

        Each is handed out once. It counts as heard at the next `StepCompleted`; if the attempt is interrupted before that, the resumed
        attempt gets it again: around a crash a word may come twice, but none is lost.
        """
        raise NotImplementedError

    async def verify(self, claim: Claim, outcome: str = "submitted") -> None:
        """From `claimed-done` to `verified`: the attempt ends well and the lease with it. Stores AttemptEnded."""
        raise NotImplementedError

    async def fail(self, claim: Claim, kind: FailureKind, message: str, *, outcome: str) -> State:
        """The attempt could not go on; the state that follows.

        checks, limit, stuck, model, bug, conflict, poison: a fault. The attempt has ended; `queued` for another one after a back-off while
        fewer than `spec.attempts` faults are counted, else `failed` (`stuck` for stuck, out of `running`).
        engine, host: `interrupted`: the same attempt goes on after a back-off; no fault, no resumption is counted.
        workspace: `queued`: a new attempt, in a new workspace, after a back-off; no fault is counted.
        The last four in a row without a completed step in between are a back-off each; the fifth is `quarantined`.
        """
        raise NotImplementedError

    async def release(self, claim: Claim, reason: str = "the station stops") -> None:
        """A planned stop: to `interrupted`; the attempt goes on later, and that is not counted as a resumption."""
        raise NotImplementedError

    # the station

    async def log(self, fact: StationFact) -> None:
        """Stores a fact of the station's own, which concerns no task (started, stopped, engine up or down)."""
        raise NotImplementedError

    async def remember(self, key: str, value: msgspec.Raw | str | int | float | bool | None | dict[str, object]) -> None:
        """Stores a setting as JSON; `lookups.setting` gives it back."""
        raise NotImplementedError
