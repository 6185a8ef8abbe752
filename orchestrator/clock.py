"""What time it is, and how to wait: an argument of whoever needs it, so that tests never sleep."""

from __future__ import annotations

import asyncio
import heapq
import time as system_time
from typing import Protocol


class Clock(Protocol):
    def time(self) -> float:
        """Seconds since the epoch. It may jump; it survives a restart, so leases and stored times use it."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, from an unknown start: for durations within one process."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def time(self) -> float:
        return system_time.time()

    def monotonic(self) -> float:
        return system_time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FakeClock:
    """Stands still until `advance` moves it; sleepers wake in the order of their times."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._tickets = 0

    def time(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def sleepers(self) -> int:
        """How many wait now: a test waits for this before it moves the clock."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        self._tickets += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._tickets, woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Lets `seconds` pass. Whoever wakes on the way may sleep again and wake again before the end."""
        end = self._elapsed + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._elapsed, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await self._settle()
        self._elapsed = end

    async def _settle(self) -> None:
        for _ in range(5):  # a woken coroutine reaches its next await within a few turns of the loop
            await asyncio.sleep(0)
