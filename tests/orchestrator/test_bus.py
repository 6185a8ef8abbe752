from __future__ import annotations

import asyncio

import pytest

from orchestrator.bus import Bus, FellBehind
from orchestrator.events import Event, TaskAdded


def event(seq: int) -> Event:
    return Event(seq=seq, at=0.0, task="t", attempt=None, fact=TaskAdded(title="t"))


async def test_followers_get_events_in_order() -> None:
    bus = Bus()
    with bus.follow() as one, bus.follow() as other:
        bus.publish([event(1), event(2)])
        bus.publish([event(3)])
        assert [it.seq for it in await one.next()] == [1, 2, 3]
        assert [it.seq for it in await other.next()] == [1, 2, 3]


async def test_a_follower_that_does_not_read_is_cut_off_and_hurts_nobody() -> None:
    bus = Bus(backlog=2)
    with bus.follow() as lazy, bus.follow() as keen:
        bus.publish([event(1), event(2)])
        assert len(await keen.next()) == 2
        bus.publish([event(3)])
        assert [it.seq for it in await keen.next()] == [3]
        with pytest.raises(FellBehind):
            await lazy.next()


async def test_closing_ends_those_who_wait() -> None:
    bus = Bus()
    with bus.follow() as follower:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_next(follower))
            await asyncio.sleep(0)
            bus.close()
        assert waiting.result() == "ended"
    with bus.follow() as late, pytest.raises(FellBehind):
        await late.next()


async def _next(follower: object) -> str:
    try:
        await follower.next()
    except FellBehind:
        return "ended"
    return "events"
