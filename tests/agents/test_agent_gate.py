"""The gate of an endpoint. S12: many agents, one engine that asks for patience."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agents.gate import LONGEST_RETRY_AFTER_S, LONGEST_WAIT_S, PROBE_S
from agents.refusals import retry_after_s


async def test_an_open_gate_lets_everybody_pass_at_once(clock: Any) -> None:
    gate = clock.gate()
    await gate.passage()
    assert (clock.slept, gate.wait_s(), gate.reason) == ([], 0.0, "")


async def test_refusals_close_it_for_longer_and_longer_up_to_a_bound(clock: Any) -> None:
    gate, waits = clock.gate(), []
    for _ in range(12):
        gate.refused("down")
        waits.append(gate.wait_s())
        await gate.passage()
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(waits) == LONGEST_WAIT_S
    gate.answered()
    gate.refused("down")
    assert gate.wait_s() == 0.5


async def test_requests_that_were_under_way_when_it_closed_are_one_refusal(clock: Any) -> None:
    gate = clock.gate()
    for _ in range(256):
        gate.refused("down")
    assert gate.wait_s() == 0.5


async def test_s12_the_servers_wish_is_a_floor_with_a_cap(clock: Any) -> None:
    gate = clock.gate()
    gate.refused("429", retry_after_s=2.0)
    assert gate.wait_s() == 2.0
    gate.refused("429", retry_after_s=86_400.0)
    assert gate.wait_s() == LONGEST_RETRY_AFTER_S


async def test_s12_while_it_is_closed_requests_go_through_one_at_a_time(clock: Any) -> None:
    gate, passed = clock.gate(), []

    async def agent() -> None:
        await gate.passage()
        passed.append(clock.now_s)

    gate.refused("down")
    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(agent())
    gaps = [later - earlier for earlier, later in itertools.pairwise(passed)]
    assert min(gaps) >= PROBE_S


async def test_s12_an_answer_opens_it_for_all(clock: Any) -> None:
    gate, passed = clock.gate(), []

    async def agent() -> None:
        await gate.passage()
        passed.append(clock.now_s)
        gate.answered()

    gate.refused("down")
    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(agent())
    assert len(passed) == 16
    assert clock.now_s < 1_000 + 60


def test_s12_both_forms_of_retry_after_and_nonsense() -> None:
    now = datetime.now(UTC)
    assert retry_after_s("2") == 2.0
    assert retry_after_s("86400") == 86_400.0
    assert 1.0 < (retry_after_s(format_datetime(now + timedelta(seconds=3), usegmt=True)) or 0) <= 3.0
    assert retry_after_s(format_datetime(now - timedelta(seconds=300), usegmt=True)) == 0.0
    assert [retry_after_s(value) for value in (None, "abc", "", "-5", "nan")] == [None] * 5


@pytest.mark.parametrize("text", ["inf", "1e9"])
def test_numbers_that_are_no_seconds_are_no_wish(text: str) -> None:
    assert retry_after_s(text) is None
