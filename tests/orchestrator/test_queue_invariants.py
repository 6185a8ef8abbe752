"""Random walks of claims, crashes, failures, stale writes and commands; what must hold of the queue holds all along.

A plain seeded walk, not a search for small inputs: the interesting states lie a dozen fitting moves deep.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from agents.events import StepCompleted
from orchestrator import lookups
from orchestrator.errors import IllegalTransition, LeaseLost, UserError
from orchestrator.events import SnapshotTaken, StateChanged
from orchestrator.queue.merge_records import unfinished
from orchestrator.store import Database, rows
from orchestrator.task import LEASED, TRANSITIONS, FailureKind, State

if TYPE_CHECKING:
    from orchestrator.queue.claims import Claim
    from tests.orchestrator.conftest import Desk

T = TypeVar("T")
TASKS = ("t0", "t1", "t2", "t3")
AFTER = {"t3": ("t0", "t1")}
KINDS: list[FailureKind] = ["checks", "stuck", "bug", "engine", "host", "workspace"]
COMMANDS = ("cancel", "retry", "approve", "reject", "reject with a comment", "look", "say", "begin", "land", "refuse", "conflict")


class Walk:
    def __init__(self, desk: Desk, seed: int) -> None:
        self.desk = desk
        self.random = random.Random(seed)
        self.incarnation = 1
        self.claims: list[Claim] = []
        """Every claim ever made, in order: old ones try to write too."""

    async def take_step(self) -> None:
        steps = [self.claim, self.work, self.write_late, self.decide, self.wait, self.crash]
        await self.random.choices(steps, weights=[4, 12, 2, 12, 3, 0.3])[0]()

    async def claim(self) -> None:
        claim = await self.desk.queue.claim(f"station-{self.incarnation}", 30)
        if claim is not None:
            same = [earlier for earlier in self.claims if earlier.task == claim.task]
            assert all(earlier.fence < claim.fence for earlier in same)
            assert claim.resumed == any(earlier.attempt == claim.attempt for earlier in same)
            self.claims.append(claim)

    async def work(self) -> None:
        """The next thing that a worker would do, mostly; sometimes it fails."""
        if not self.claims:
            return
        claim = self.random.choice(self.claims[-3:])
        queue = self.desk.queue
        match await self.desk.state(claim.task):
            case "admitted":
                usual = queue.move(claim, "preparing")
            case "preparing":
                usual = queue.move(claim, "running")
            case "running" if self.random.random() < 0.4:
                usual = self.record(claim)
            case "running":
                usual = queue.move(claim, "claimed-done")
            case _:
                usual = queue.verify(claim)
        if self.random.random() < 0.08:
            usual.close()
            usual = queue.fail(claim, self.random.choice(KINDS), "x", outcome="x")
        await self.write(claim, usual)

    async def write_late(self) -> None:
        if not self.claims:
            return
        claim = self.random.choice(self.claims)
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: self.desk.queue.release(claim),
            lambda: self.desk.queue.move(claim, "running"),
            lambda: self.desk.queue.take_messages(claim),
            lambda: self.record(claim),
        ]
        await self.write(claim, self.random.choice(writes)())

    async def record(self, claim: Claim) -> None:
        step = StepCompleted(step=self.random.randint(1, 5))
        await self.desk.queue.record(claim, [step, SnapshotTaken(commit="s", files_changed=1, insertions=1, deletions=0, seconds=0.1)])

    async def write(self, claim: Claim, work: Awaitable[object]) -> None:
        """Only the newest claim of a task may succeed."""
        newest = [other for other in self.claims if other.task == claim.task][-1]
        before = len(self.desk.published)
        try:
            await work
        except (LeaseLost, IllegalTransition):
            assert len(self.desk.published) == before
            return
        assert claim is newest

    async def wait(self) -> None:
        await self.desk.clock.advance(self.random.choice([1, 10, 40, 400]))
        live = [claim for claim in self.claims if self.random.random() < 0.3]
        newest = {claim.task: claim for claim in self.claims}
        lost = await self.desk.queue.renew(live, 30)
        assert all(claim in lost for claim in live if claim is not newest[claim.task])

    async def crash(self) -> None:
        self.incarnation += 1
        await self.desk.queue.interrupt_orphans(f"station-{self.incarnation}")

    async def decide(self) -> None:
        task, command = self.random.choice(TASKS), self.random.choice(COMMANDS)
        if command == "cancel" and self.random.random() < 0.7:
            return
        before = len(self.desk.published)
        try:
            await self.command(task, command)
        except (UserError, IllegalTransition):
            assert len(self.desk.published) == before

    async def command(self, task: str, command: str) -> None:
        decisions, merges = self.desk.decisions, self.desk.merges
        match command:
            case "cancel":
                await decisions.cancel(task)
            case "retry":
                await decisions.retry(task, "again")
            case "approve":
                await decisions.approve(task)
            case "reject":
                await decisions.reject(task)
            case "reject with a comment":
                await decisions.reject(task, "not so")
            case "look":
                await decisions.look(task)
            case "say":
                await decisions.say(task, "hello")
            case "begin":
                await merges.begin(task)
            case "land" if self.random.random() < 0.2:
                await merges.landed(task, "m")
            case "conflict":
                await merges.refused(task, "conflict", ["x"])
            case _:
                await merges.refused(task, "dirty")


def expect_leases_with_workers_only(db: Database, claims: list[Claim]) -> None:
    for task in rows(db, "SELECT * FROM task"):
        assert (task["owner"] is not None) == (task["state"] in LEASED)
        mine = [claim for claim in claims if claim.task == task["id"]]
        assert task["fence"] == len(mine)
        assert task["attempt"] == len({claim.attempt for claim in mine})
        under_way = rows(db, "SELECT number FROM attempt WHERE task = ? AND ended_at IS NULL", (task["id"],))
        assert len(under_way) == (task["state"] in LEASED or task["state"] == "interrupted")
        assert all(attempt["number"] == task["attempt"] for attempt in under_way)
    merging = {found["id"] for found in rows(db, "SELECT id FROM task WHERE state = 'merging'")}
    assert {merge.task for merge in unfinished(db)} == merging


async def expect_a_true_log(desk: Desk) -> Counter[tuple[State, State]]:
    """The log tells every change and no other, in steps that the table allows."""
    log = await desk.log()
    assert log == desk.published
    states: dict[str, State] = dict.fromkeys(TASKS, "queued")
    seen: Counter[tuple[State, State]] = Counter()
    for event in log:
        if isinstance(event.fact, StateChanged):
            assert event.task is not None
            assert states[event.task] == event.fact.old
            assert event.fact.new in TRANSITIONS[event.fact.old]
            states[event.task] = event.fact.new
            seen[event.fact.old, event.fact.new] += 1
    assert await desk.read(lookups.queue_counts) == dict(Counter(states.values()))
    return seen


@pytest.mark.parametrize("seed", range(8))
async def test_the_queues_promises_hold_on_any_walk(desk: Desk, seed: int) -> None:
    await desk.queue.add([desk.spec(task, after=AFTER.get(task, ()), attempts=2) for task in TASKS])
    walk = Walk(desk, seed)
    for number in range(2_500):
        await walk.take_step()
        if number % 20 == 0:
            await desk.read(lambda db: expect_leases_with_workers_only(db, walk.claims))
    seen = await expect_a_true_log(desk)
    assert len(seen) > 15, "the walk went nowhere"
    for task in TASKS:
        await desk.detail(task)
