"""Runs attempts in this process: starts them, keeps their leases, and ends them on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from agents.meter import Meter
from orchestrator.clock import Clock
from orchestrator.errors import LeaseLost
from orchestrator.metrics import LiveAttempt, TokenBook
from orchestrator.queue.queue import Claim, Queue
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
        self._attempts: dict[asyncio.Task[None], Claim] = {}
        """All that have not ended, also a former attempt at a task whose next one waits for it."""
        self._stopping: set[asyncio.Task[None]] = set()
        self._cut_off: list[Claim] = []
        """Claims whose attempts ended because the disk was full: given back as soon as that can be written."""

    @property
    def at_work(self) -> int:
        return len(self._attempts)

    def start(self, claim: Claim) -> None:
        assert self._group is not None, "run() has not begun"
        attempt = self._group.create_task(self._one(claim, after=self._at(claim.task)), name=f"{claim.task}/{claim.attempt}")
        self._attempts[attempt] = claim
        # Not in `_one`: what is cancelled before its first step never gets there.
        attempt.add_done_callback(self._over)

    def stop(self, task: str) -> None:
        for attempt in self._at(task):
            self._cancel(attempt)

    async def stop_all(self) -> None:
        """Cancel every attempt and wait until their processes are gone. What they held is still theirs in the store: `Queue.release_all`."""
        attempts = list(self._attempts)
        for attempt in attempts:
            self._cancel(attempt)
        if attempts:
            await asyncio.wait(attempts)

    async def run(self) -> None:
        """Until cancelled: attempts live in here, and their leases are renewed. Raises what the store cannot get over."""
        async with asyncio.TaskGroup() as self._group:
            while True:
                await self._clock.sleep(HEARTBEAT_S)
                await self._renew()
                await self._give_back()

    def _at(self, task: str) -> list[asyncio.Task[None]]:
        return [attempt for attempt, claim in self._attempts.items() if claim.task == task]

    def _cancel(self, attempt: asyncio.Task[None]) -> None:
        """Once only: a second time would cut off the end that it makes of its processes."""
        if attempt not in self._stopping:
            self._stopping.add(attempt)
            attempt.cancel()

    def _over(self, attempt: asyncio.Task[None]) -> None:
        del self._attempts[attempt]
        self._stopping.discard(attempt)
        self._ended()

    async def _renew(self) -> None:
        live = dict(self._attempts)
        try:
            lost = await self._queue.renew(list(live.values()), LEASE_S)
        except StoreFull:
            self._full()
            return
        for attempt, claim in live.items():
            if claim in lost and attempt in self._attempts:
                log.warning("%s/%d: the lease is lost", claim.task, claim.attempt)
                self._cancel(attempt)

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

    async def _one(self, claim: Claim, *, after: Sequence[asyncio.Task[None]]) -> None:
        for former in after:  # it still ends its processes: the workspace may be the same
            self._cancel(former)
        if after:
            await asyncio.wait(after)
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
