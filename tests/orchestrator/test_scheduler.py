from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.home import Home
from orchestrator.queue.claims import Claim
from orchestrator.scheduler import Scheduler


class Shelf:
    """A runner that takes claims down and runs nothing."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.came = asyncio.Event()

    @property
    def at_work(self) -> int:
        return len(self.claims)

    def start(self, claim: Claim) -> None:
        self.claims.append(claim)
        self.came.set()

    def stop(self, task: str) -> None:
        self.claims = [claim for claim in self.claims if claim.task != task]


class Office:
    def __init__(self, desk: Any, home: Home, agents: int) -> None:
        self.shelf = Shelf()
        self.engine: str | None = None
        self.scheduler = Scheduler(
            home=home,
            store=desk.store,
            queue=desk.queue,
            runner=self.shelf,
            clock=desk.clock,
            owner="station-1",
            agents=agents,
            engine_problem=lambda: self.engine,
        )

    async def until_started(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            while len(self.shelf.claims) < count:
                self.shelf.came.clear()
                await self.shelf.came.wait()
        return [claim.task for claim in self.shelf.claims]

    async def until_waiting(self) -> str:
        async with asyncio.timeout(10):
            while self.scheduler.waiting_for is None:  # noqa: ASYNC110 - what people read, no event of ours
                await asyncio.sleep(0)
        return self.scheduler.waiting_for


@contextlib.asynccontextmanager
async def office(desk: Any, folder: Path, *, agents: int = 2, engine: str | None = None) -> AsyncIterator[Office]:
    home = Home.at(folder / "home")
    home.ensure()
    made = Office(desk, home, agents)
    made.engine = engine
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.scheduler.run())
        yield made
        running.cancel()


async def test_tasks_start_up_to_the_limit_and_the_next_when_one_ends(desk: Any, tmp_path: Path) -> None:
    await desk.add("a", "b", "c")
    async with office(desk, tmp_path) as made:
        assert await made.until_started(2) == ["a", "b"]
        assert await made.until_waiting() == "agents: 2 of 2 at work"
        made.shelf.stop("a")
        made.scheduler.nudge()
        assert await made.until_started(2) == ["b", "c"]


async def test_nothing_starts_while_the_engine_does_not_answer(desk: Any, tmp_path: Path) -> None:
    await desk.add("a")
    async with office(desk, tmp_path, engine="down") as made:
        assert await made.until_waiting() == "engine: down"
        assert made.shelf.claims == []
        made.engine = None
        made.scheduler.nudge()
        assert await made.until_started(1) == ["a"]


async def test_a_store_without_room_shows_on_every_screen_and_work_goes_on_when_there_is_some(desk: Any, tmp_path: Path) -> None:
    async with office(desk, tmp_path) as made:
        made.scheduler.store_full()
        await desk.add("a")
        made.scheduler.nudge()
        assert await made.until_started(1) == ["a"]
        assert made.scheduler.warning == ""


async def test_a_closed_scheduler_starts_nothing(desk: Any, tmp_path: Path) -> None:
    async with office(desk, tmp_path) as made:
        made.scheduler.close()
        await desk.add("a")
        made.scheduler.nudge()
        assert await made.until_waiting() == "the station stops"
        assert await desk.state("a") == "queued"


async def test_a_store_that_fails_ends_the_scheduler_loudly(desk: Any, tmp_path: Path) -> None:
    await desk.store.aclose()
    with pytest.raises(ExceptionGroup):
        async with office(desk, tmp_path):
            await asyncio.Event().wait()
