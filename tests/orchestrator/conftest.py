"""For the tests of the durable part: a queue in a real file, with everything that works on it, and a clock that stands still."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from agents.events import ModelReplied, StepCompleted
from orchestrator import lookups
from orchestrator.clock import FakeClock
from orchestrator.eventlog import Journal, events_after
from orchestrator.events import Event, SnapshotTaken
from orchestrator.queue.decisions import Decisions
from orchestrator.queue.merge_records import Merges
from orchestrator.queue.queue import Claim, Queue
from orchestrator.store import Database, Store
from orchestrator.task import State, TaskSpec
from orchestrator.views import TaskDetail, TaskRow

T = TypeVar("T")
LEASE_S = 30.0


class Desk:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.published: list[Event] = []
        self.journal = journal = Journal(store, clock, self.published.extend)
        self.queue = Queue(journal)
        self.decisions = Decisions(journal)
        self.merges = Merges(journal)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, path: Path, clock: FakeClock | None = None) -> AsyncIterator[Desk]:
        async with await Store.open(path) as store:
            yield cls(store, clock or FakeClock())

    @staticmethod
    def spec(task: str, **changes: Any) -> TaskSpec:
        given = {"title": task, "prompt": "Fix it.", "repo": "/repo", "base_commit": "b" * 40, "target_branch": "main"}
        return TaskSpec(**{"id": task, **given, **changes})

    @staticmethod
    def reply(step: int, **changes: Any) -> ModelReplied:
        given: dict[str, Any] = {"input_tokens": 100, "cached_tokens": None, "output_tokens": 10, "ttft_s": 0.1, "decode_s": 0.5}
        return ModelReplied(**{"step": step, "tool_calls": 1, "finish_reason": "tool_calls", **given, **changes})

    async def add(self, *tasks: str, **changes: Any) -> None:
        await self.queue.add([self.spec(task, **changes) for task in tasks])

    async def read(self, work: Callable[[Database], T]) -> T:
        return await self.store.read(work)

    async def row(self, task: str) -> TaskRow:
        now = self.clock.time()
        return await self.read(lambda db: lookups.task_row(db, task, now=now))

    async def detail(self, task: str) -> TaskDetail:
        now = self.clock.time()
        return await self.read(lambda db: lookups.task_detail(db, task, now=now))

    async def state(self, task: str) -> State:
        return (await self.row(task)).state

    async def log(self, task: str | None = None) -> list[Event]:
        return await self.read(lambda db: events_after(db, 0, task=task, limit=100_000))

    async def claim(self, owner: str = "station-1") -> Claim:
        claim = await self.queue.claim(owner, LEASE_S)
        assert claim is not None, "nothing to claim"
        return claim

    async def running(self, owner: str = "station-1") -> Claim:
        """The next task, claimed and at work."""
        claim = await self.claim(owner)
        await self.queue.move(claim, "preparing")
        await self.queue.move(claim, "running")
        return claim

    async def verified(self, owner: str = "station-1") -> Claim:
        """The next task, done, with a snapshot."""
        claim = await self.running(owner)
        await self.queue.record(claim, [SnapshotTaken(commit="s1", files_changed=1, insertions=2, deletions=3, seconds=0.1)])
        await self.queue.move(claim, "claimed-done")
        await self.queue.verify(claim)
        return claim

    async def step(self, claim: Claim, number: int) -> None:
        await self.queue.record(claim, [self.reply(number), StepCompleted(step=number)])

    async def crash(self, successor: str) -> list[str]:
        """What a new station finds and does after the old one was killed."""
        return await self.queue.interrupt_orphans(successor)


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Desk.open(tmp_path / "station.db") as opened:
        yield opened


@pytest.fixture
def desk_class() -> type[Desk]:
    """For tests that open a home several times."""
    return Desk
