"""Runs attempts in this process: starts them, keeps their leases, and ends them on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Protocol

from agents.meter import Meter
from orchestrator.clock import Clock
from orchestrator.errors import LeaseLost
from orchestrator.metrics import LiveAttempt, TokenBook
from orchestrator.queue import Claim, Queue
from orchestrator.store import StoreFull

log = logging.getLogger(__name__)

LEASE_S = 60.0
"""Three heartbeats may be missed before a task counts as abandoned."""
HEARTBEAT_S = 15.0


class Runner(Protocol):
    """Where attempts run. Another machine's runner claims through the API; this one shares the station's process."""

    @property
    def at_work(self) -> int: ...

    def start(self, claim: Claim) -> None: ...

    def stop(self, task: str) -> None:
        """End the attempt at this task, if there is one, without a word to the queue: whoever calls has settled the task's state."""
        ...


class LocalRunner:
    """`ended` is called after each attempt; `full` when the store had no room for what an attempt wanted to write."""

    def __init__(
        self,
        work: Callable[[Claim, LiveAttempt], Coroutine[None, None, None]],
        *,
        queue: Queue,
        book: TokenBook,
        clock: Clock,
        ended: Callable[[], None],
        full: Callable[[], None],
    ) -> None:
        self._work = work
        self._queue = queue
        self._book = book
        self._clock = clock
        self._ended = ended
        self._full = full
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, tuple[Claim, asyncio.Task[None]]] = {}
        self._cut_off: list[Claim] = []
        """Claims whose attempts ended because the disk was full: given back as soon as that can be written."""

    @property
    def at_work(self) -> int:
        return len(self._tasks)

    def start(self, claim: Claim) -> None:
        assert self._group is not None, "run() has not begun"
        before = self._tasks.get(claim.task)
        attempt = self._group.create_task(self._one(claim, after=before[1] if before else None), name=f"{claim.task}/{claim.attempt}")
        self._tasks[claim.task] = (claim, attempt)

    def stop(self, task: str) -> None:
        if task in self._tasks:
            self._tasks[task][1].cancel()

    async def stop_all(self) -> None:
        """Cancel every attempt and wait until their processes are gone. What they held is still theirs in the store: `Queue.release_all`."""
        attempts = [attempt for _, attempt in self._tasks.values()]
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)

    async def run(self) -> None:
        """Until cancelled: attempts live in here, with a heartbeat for each. Raises what the store cannot get over."""
        async with asyncio.TaskGroup() as self._group:
            while True:
                await self._clock.sleep(HEARTBEAT_S)
                for claim, attempt in list(self._tasks.values()):
                    await self._heartbeat(claim, attempt)
                await self._give_back()

    async def _give_back(self) -> None:
        while self._cut_off:
            try:
                await self._queue.release(self._cut_off[-1], "the disk was full")
            except StoreFull:
                return
            except LeaseLost:
                log.info("%s: somebody else has it already", self._cut_off[-1].task)
            self._cut_off.pop()
            self._ended()

    async def _heartbeat(self, claim: Claim, attempt: asyncio.Task[None]) -> None:
        try:
            await self._queue.heartbeat(claim, LEASE_S)
        except LeaseLost:
            if self._tasks.get(claim.task, (None, None))[1] is attempt:
                log.warning("%s/%d: the lease is lost", claim.task, claim.attempt)
                attempt.cancel()
        except StoreFull:
            self._full()

    async def _one(self, claim: Claim, *, after: asyncio.Task[None] | None) -> None:
        if after is not None:  # a former worker of this task still ends its processes: the workspace may be the same
            after.cancel()
            await asyncio.wait([after])
        live = LiveAttempt(meter=Meter(output_tokens=claim.output_tokens, decode_s=claim.decode_s))
        key = (claim.task, claim.attempt)
        self._book.open(key, live)
        try:
            await self._work(claim, live)
        except StoreFull:
            log.warning("%s/%d: no room to store its work; it goes on once there is", claim.task, claim.attempt)
            self._cut_off.append(claim)
            self._full()
        finally:
            self._book.close(key)
            if self._tasks.get(claim.task, (None, None))[0] is claim:
                del self._tasks[claim.task]
            self._ended()
