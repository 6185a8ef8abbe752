from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.metrics import LiveAttempt, TokenBook, Tokens
from orchestrator.queue.claims import Claim
from orchestrator.runner import HEARTBEAT_S, LEASE_S, LocalRunner
from orchestrator.store import StoreFull


class Job:
    """What the runner is given to do: it waits to be let go, and remembers how it ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.slow: asyncio.Event | None = None
        """What a cancelled attempt waits for before it ends."""
        self.error: Exception | None = None
        self.ended: list[str] = []

    async def __call__(self, claim: Claim, live: LiveAttempt) -> None:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            if self.slow is not None:
                await self.slow.wait()
            self.ended.append("cancelled")
            raise
        if self.error is not None:
            raise self.error
        live.meter.output_tokens = 10
        self.ended.append("done")


class Bench:
    def __init__(self, desk: Any) -> None:
        self.job = Job()
        self.book = TokenBook(Tokens())
        self.done = asyncio.Event()
        self.full = asyncio.Event()
        self.runner = LocalRunner(self.job, queue=desk.queue, book=self.book, clock=desk.clock, ended=self.done.set, full=self.full.set)


@contextlib.asynccontextmanager
async def bench(desk: Any) -> AsyncIterator[Bench]:
    made = Bench(desk)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.runner.run())
        while not desk.clock.sleepers:  # noqa: ASYNC110 - the clock of a test tells nobody who waits for it
            await asyncio.sleep(0)
        yield made
        await made.runner.stop_all()
        running.cancel()


async def claimed(desk: Any, task: str) -> Claim:
    await desk.add(task)
    return await desk.queue.claim("station-1", LEASE_S)


async def test_an_attempt_at_work_keeps_its_lease(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        for _ in range(12):
            await tick(desk)
        assert await desk.queue.renew([], LEASE_S) == []
        assert await desk.state("a") == "admitted"


async def test_an_attempt_at_work_outlives_a_suspended_machine(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        await tick(desk, 100_000)
        assert (await desk.state("a"), made.runner.at_work) == ("admitted", 1)


async def test_an_attempt_cancelled_before_its_first_step_gives_its_place_back(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        made.runner.stop("a")
        await made.done.wait()
        assert (made.runner.at_work, made.job.ended) == (0, [])


async def test_an_attempt_cancelled_while_it_waits_for_its_former_worker_gives_its_place_back(desk: Any) -> None:
    async with bench(desk) as made:
        made.job.slow = asyncio.Event()
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        await desk.queue.interrupt_orphans("station-2")
        made.runner.start(await desk.queue.claim("station-1", LEASE_S))
        made.runner.stop("a")
        await made.done.wait()
        assert made.runner.at_work == 1
        await desk.queue.interrupt_orphans("station-2")
        made.job.begun.clear()
        made.runner.start(await desk.queue.claim("station-1", LEASE_S))
        assert not made.job.begun.is_set(), "two workers in one workspace"
        made.job.slow.set()
        await made.job.begun.wait()
        assert (made.runner.at_work, made.job.ended) == (1, ["cancelled"])


async def tick(desk: Any, seconds: float = HEARTBEAT_S) -> None:
    """One round of renewals: the store works in a thread, so the sleeper's return says that it is over."""
    await desk.clock.advance(seconds)
    while not desk.clock.sleepers:  # noqa: ASYNC110 - the clock of a test tells nobody who waits for it
        await asyncio.sleep(0)


async def test_an_attempt_whose_task_is_anothers_now_is_stopped(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        assert await desk.queue.interrupt_orphans("station-2") == ["a"]
        await tick(desk)
        await made.done.wait()
        assert made.job.ended == ["cancelled"]
        assert made.runner.at_work == 0


async def test_what_an_attempt_used_stays_in_the_book(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        made.job.go.set()
        await made.done.wait()
        assert made.book.total().output == 10


async def test_a_full_disk_ends_the_attempt_but_not_the_station_and_the_task_comes_back(desk: Any) -> None:
    async with bench(desk) as made:
        made.job.error = StoreFull("no room")
        made.job.go.set()
        made.runner.start(await claimed(desk, "a"))
        await made.full.wait()
        await made.done.wait()
        assert await desk.state("a") == "admitted"
        await tick(desk)
        assert await desk.state("a") == "interrupted"
        assert (await desk.detail("a")).attempts[0].resumptions == 0


async def test_a_stop_waits_for_every_attempt_to_end(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        await made.runner.stop_all()
        assert (made.job.ended, made.runner.at_work) == (["cancelled"], 0)
        assert await desk.queue.release_all("station-1") == ["a"]


async def test_a_task_that_comes_back_waits_until_its_former_worker_has_gone(desk: Any) -> None:
    async with bench(desk) as made:
        made.runner.start(await claimed(desk, "a"))
        await made.job.begun.wait()
        await desk.queue.interrupt_orphans("station-2")
        made.job.begun.clear()
        again = await desk.queue.claim("station-1", LEASE_S)
        made.runner.start(again)
        await made.job.begun.wait()
        assert made.job.ended == ["cancelled"]
        assert made.runner.at_work == 1
