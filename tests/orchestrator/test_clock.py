from __future__ import annotations

import asyncio

from orchestrator.clock import FakeClock, SystemClock


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 5))
        group.create_task(sleeper("often", 2, 2, 2))
        await clock.advance(4)
        assert woken == [("often", 2), ("often", 4)]
        await clock.advance(10)
    assert woken[2:] == [("late", 5), ("often", 6)]
    assert clock.monotonic() == 14


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock(start=1000)
    async with asyncio.TaskGroup() as group:
        sleeper = group.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        assert clock.sleepers == 1
        sleeper.cancel()
    assert clock.sleepers == 0
    await clock.advance(2)
    assert clock.time() == 1002


async def test_the_systems_clock_goes_on() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.time() > 1_700_000_000
