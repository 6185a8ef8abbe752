"""The tasks' rows as clients see them: read from the store once per change, with what only the running station knows on top."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import structs

from orchestrator import lookups
from orchestrator.eventlog import last_seq
from orchestrator.events import Event
from orchestrator.metrics import TokenBook
from orchestrator.store import Database, Store
from orchestrator.task import ACTIVE, WAITING
from orchestrator.views import TaskDetail, TaskRow

STALE_S = 1.0
"""A back-off runs out and a dependency changes without an event of the task's own: rows that wait are read again after this time."""


class RowBook:
    """`waiting_for` says why no further task starts now, None when there is room."""

    def __init__(self, store: Store, book: TokenBook, *, waiting_for: Callable[[], str | None]) -> None:
        self._store = store
        self._book = book
        self._waiting_for = waiting_for
        self._rows: dict[str, tuple[TaskRow, float]] = {}
        self._changed: dict[str, None] = {}
        self._read_all = True
        self._reading = asyncio.Lock()
        self._seq = 0
        self.max_parallel = 0

    def publish(self, events: Sequence[Event]) -> None:
        """Take note of what changed; nothing is read before somebody asks."""
        for event in events:
            if event.task is None:
                continue
            self._changed[event.task] = None
        self._seq = max(self._seq, events[-1].seq) if events else self._seq

    async def refresh(self) -> int:
        """Read again what changed; the sequence number up to which the rows are now true.

        One reader at a time, and the number is taken before its read: an event that comes during the read is not yet
        in the rows, so a client must be told to ask for it again.
        """
        async with self._reading:
            now = time.time()
            if self._read_all:
                await self._read_everything(now)
            for row, read_at in self._rows.values():
                if row.waiting_for is not None and now - read_at > STALE_S:
                    self._changed[row.id] = None
            seq, changed, self._changed = self._seq, self._changed, {}
            if changed:
                try:
                    fresh, self.max_parallel = await self._store.read(lambda db: _read(db, list(changed), now))
                except BaseException:  # cancelled too: the next reader must not take these rows for read
                    self._changed = changed | self._changed
                    raise
                self._rows.update({row.id: (row, now) for row in fresh})
            return seq

    async def _read_everything(self, now: float) -> None:
        rows, self.max_parallel, seq = await self._store.read(
            lambda db: (lookups.task_rows(db, now=now), lookups.totals(db).max_parallel, last_seq(db))
        )
        self._rows = {row.id: (row, now) for row in rows}
        self._seq = max(self._seq, seq)
        self._read_all = False

    def rows(self, after: int = 0) -> list[TaskRow]:
        """In the order of submission: rows that changed after that sequence number, and all that are at work."""
        now = time.time()
        return [self._live(row, now - read_at) for row, read_at in self._rows.values() if row.changed_seq > after or row.state in ACTIVE]

    def counts(self) -> dict[str, int]:
        return dict(Counter(row.state for row, _ in self._rows.values()))

    async def row(self, task: str) -> TaskRow:
        """UserError when there is no such task."""
        now = time.time()
        return self._live(await self._store.read(lambda db: lookups.task_row(db, task, now=now)), 0.0)

    async def detail(self, task: str) -> TaskDetail:
        """UserError when there is no such task."""
        now = time.time()
        found = await self._store.read(lambda db: lookups.task_detail(db, task, now=now))
        live = self._book.live((task, found.row.attempt))
        return structs.replace(found, row=self._live(found.row, 0.0), live_text=live.meter.live_text if live else None)

    def _live(self, row: TaskRow, age_s: float) -> TaskRow:
        live = self._book.live((row.id, row.attempt)) if row.state in ACTIVE else None
        if live is not None:
            return structs.replace(
                row,
                state_age_s=row.state_age_s + age_s,
                # An engine that reports no usage leaves it unknown, not 0.
                output_tokens=max(row.output_tokens or 0, live.meter.output_tokens) or row.output_tokens,
                tokens_per_s=self._book.rate((row.id, row.attempt)),
                activity=live.activity,
            )
        waiting_for = self._waiting_for() if row.state in WAITING and row.waiting_for is None else row.waiting_for
        return structs.replace(row, state_age_s=row.state_age_s + age_s, waiting_for=waiting_for)


def _read(db: Database, tasks: Sequence[str], now: float) -> tuple[list[TaskRow], int]:
    return [lookups.task_row(db, task, now=now) for task in tasks], lookups.totals(db).max_parallel
