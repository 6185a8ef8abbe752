"""The scheduler in real time.

Steps follow each other on a schedule of their own. When the process is late, the next steps run at once until the schedule is caught up with, so
the rate holds on average; more than `FORGIVEN_S` behind, the rest is given up and counted in `lost_s`.
"""

from __future__ import annotations

import asyncio
import time
from typing import NoReturn

from orchestrator.serving.sim.scheduler import EngineRequest, Scheduler

FORGIVEN_S = 1.0


class EngineClock:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._work = asyncio.Event()

    def submit(self, request: EngineRequest) -> None:
        self.scheduler.add(request)
        self._work.set()

    async def run(self) -> NoReturn:
        due = time.monotonic()
        while True:
            self._work.clear()
            step = self.scheduler.plan(time.monotonic())
            if step is None:
                await self._work.wait()
                due = time.monotonic()
                continue
            due += step.seconds
            late = time.monotonic() - due
            if late > FORGIVEN_S:
                self.scheduler.counters.lost_s += late - FORGIVEN_S
                due += late - FORGIVEN_S
            # Even a late step waits for one turn of the loop: what the last one produced is sent first.
            await asyncio.sleep(max(0.0, -late))
            self.scheduler.apply(step, time.monotonic())
