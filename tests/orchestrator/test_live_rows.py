"""The rows as clients see them, against a real store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from orchestrator.clock import SystemClock
from orchestrator.eventlog import Journal
from orchestrator.live_rows import RowBook
from orchestrator.metrics import TokenBook, Tokens
from orchestrator.queue.queue import Claim, Queue
from orchestrator.store import Database, Store, StoreFailed
from orchestrator.task import State, TaskSpec

T = TypeVar("T")


class HeldStore(Store):
    """A store whose reads have seen the file, but do not return before `go`, and then with `error` if there is one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_read = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None

    async def read(self, work: Callable[[Database], T]) -> T:
        found = await super().read(work)
        self.has_read.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return found


class Counter:
    """One task at work, and the rows that clients have seen."""

    def __init__(self, store: HeldStore) -> None:
        self.store = store
        self.rows = RowBook(store, TokenBook(Tokens()), waiting_for=lambda: None)
        self._queue = Queue(Journal(store, SystemClock(), self.rows.publish))

    async def open(self) -> Claim:
        await self._queue.add([TaskSpec(id="a", title="a", prompt="p", repo="/r", base_commit="0" * 40, target_branch="main")])
        claim = await self._queue.claim("me", 60)
        assert claim is not None
        await self.rows.refresh()
        return claim

    async def move(self, claim: Claim, state: State = "preparing") -> None:
        await self._queue.move(claim, state)

    @property
    def state(self) -> str:
        return self.rows.rows()[0].state


@contextlib.asynccontextmanager
async def counter(folder: Path) -> AsyncIterator[Counter]:
    async with await HeldStore.open(folder / "station.db") as store:
        yield Counter(store)


async def test_a_change_during_a_read_is_told_at_the_next_one(tmp_path: Path) -> None:
    """The number a client gets must not be newer than the rows that come with it, or it never asks for the change again."""
    async with counter(tmp_path) as made:
        claim = await made.open()
        await made.move(claim)
        made.store.has_read.clear()
        made.store.go.clear()
        reading = asyncio.ensure_future(made.rows.refresh())
        await made.store.has_read.wait()
        await made.move(claim, "running")
        made.store.go.set()
        seq = await reading
        assert made.state == "preparing"
        assert await made.rows.refresh() > seq
        assert [row.state for row in made.rows.rows(seq)] == ["running"]
        assert made.rows.rows()[0].changed_seq > seq


async def test_what_a_failed_read_did_not_bring_is_read_again(tmp_path: Path) -> None:
    async with counter(tmp_path) as made:
        await made.move(await made.open())
        made.store.error = StoreFailed("no")
        with pytest.raises(StoreFailed):
            await made.rows.refresh()
        assert made.state == "admitted"
        made.store.error = None
        await made.rows.refresh()
        assert made.state == "preparing"


async def test_what_a_cancelled_read_did_not_bring_is_read_again(tmp_path: Path) -> None:
    async with counter(tmp_path) as made:
        await made.move(await made.open())
        made.store.has_read.clear()
        made.store.go.clear()
        reading = asyncio.ensure_future(made.rows.refresh())
        await made.store.has_read.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        made.store.go.set()
        await made.rows.refresh()
        assert made.state == "preparing"
