"""Token counts that no engine can have meant: they may come from anybody, and homes may hold them already."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator import lookups
from orchestrator.queue.token_counts import MOST_TOKENS
from orchestrator.store import Database


def poisoned(value: int) -> Any:
    def write(db: Database) -> None:
        db.execute("UPDATE attempt SET input_tokens = ?, cached_tokens = ?, output_tokens = ?", (value, value, value))

    return write


@pytest.mark.parametrize(("value", "shown"), [(2**63 - 1, MOST_TOKENS), (-(2**63), 0), (-5, 0)])
async def test_a_home_that_holds_them_is_read_and_goes_on(desk: Any, value: int, shown: int) -> None:
    await desk.add("a", "b", "c")
    claims = [await desk.running() for _ in range(3)]
    await desk.store.write(poisoned(value))
    totals = await desk.read(lookups.totals)
    assert (totals.input_tokens, totals.cached_tokens, totals.output_tokens) == (3 * shown,) * 3
    row = await desk.row("a")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (shown,) * 3
    attempt = (await desk.detail("a")).attempts[0]
    assert (attempt.input_tokens, attempt.output_tokens) == (shown, shown)
    await desk.step(claims[0], 1)
    assert 0 <= (await desk.row("a")).output_tokens <= MOST_TOKENS
    await desk.crash("station-2")
    assert (await desk.claim("station-2")).output_tokens <= MOST_TOKENS


async def test_a_sum_that_grows_beyond_bounds_stays_at_them(desk: Any) -> None:
    await desk.add("a")
    claim = await desk.running()
    for step in (1, 2, 3):
        reply = desk.reply(step, input_tokens=2**63 - 1, cached_tokens=2**63 - 1, output_tokens=2**63 - 1)
        await desk.queue.record(claim, [reply])
    row = await desk.row("a")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (MOST_TOKENS,) * 3


async def test_counts_that_were_never_reported_stay_unknown(desk: Any) -> None:
    await desk.add("a")
    claim = await desk.running()
    await desk.queue.record(claim, [desk.reply(1, input_tokens=None, output_tokens=None)])
    row = await desk.row("a")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (None, None, None)
    assert (await desk.read(lookups.totals)).cached_tokens is None
