"""The rows as clients see them, against a real store."""

from __future__ import annotations

import asyncio
from pathlib import Path

from orchestrator.clock import SystemClock
from orchestrator.eventlog import Journal
from orchestrator.metrics import TokenBook, Tokens
from orchestrator.queue import Queue
from orchestrator.rows import RowBook
from orchestrator.store import Store
from orchestrator.task import TaskSpec


def spec(name: str) -> TaskSpec:
    return TaskSpec(id=name, title=name, prompt="p", repo="/r", base_commit="0" * 40, target_branch="main")


async def test_a_change_during_a_read_is_told_at_the_next_one(tmp_path: Path) -> None:
    """The number a client gets must not be newer than the rows that come with it, or it never asks for the change again."""
    store = await Store.open(tmp_path / "station.db")
    clock = SystemClock()
    book = RowBook(store, TokenBook(Tokens()), waiting_for=lambda: None)
    queue = Queue(Journal(store, clock, book.publish))
    try:
        await queue.add([spec(f"t{n}") for n in range(8)])
        seen: dict[str, int] = {}
        seq = await book.refresh()
        done = asyncio.Event()

        async def work() -> None:
            while (claim := await queue.claim("me", 60)) is not None:
                await queue.move(claim, "preparing")
                await queue.move(claim, "running")
            done.set()

        async def watch(after: int) -> None:
            while True:
                last = done.is_set()
                await asyncio.sleep(0)  # a refresh that finds nothing to read gives nobody else a turn
                upto = await book.refresh()
                seen.update({row.id: row.changed_seq for row in book.rows(after) if row.changed_seq > after})
                after = upto
                if last:
                    return

        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            group.create_task(watch(seq))
            group.create_task(watch(seq))
        await book.refresh()
        assert seen == {row.id: row.changed_seq for row in book.rows()}
        assert {row.state for row in book.rows()} == {"running"}
    finally:
        await store.aclose()
