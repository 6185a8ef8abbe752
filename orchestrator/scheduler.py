"""Starts tasks while there is room for them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from orchestrator import lookups
from orchestrator.admission import Room, disk_space, reason_to_wait
from orchestrator.clock import Clock
from orchestrator.home import Home
from orchestrator.queue.queue import Queue
from orchestrator.runner import LEASE_S, Runner
from orchestrator.store import Store, StoreFull

log = logging.getLogger(__name__)

IDLE_S = 2.0
"""Longest time between two looks at what changes without a word: the disk, back-offs."""


class Scheduler:
    """`owner` names this incarnation of the station; `engine_problem` says what keeps agents from the engine, None when nothing does."""

    def __init__(
        self,
        *,
        home: Home,
        store: Store,
        queue: Queue,
        runner: Runner,
        clock: Clock,
        owner: str,
        agents: int,
        engine_problem: Callable[[], str | None],
    ) -> None:
        self._home = home
        self._store = store
        self._queue = queue
        self._runner = runner
        self._clock = clock
        self._owner = owner
        self._agents = agents
        self._engine_problem = engine_problem
        self._nudged = asyncio.Event()
        self._store_full = False
        self._closed = False
        self.waiting_for: str | None = None
        """Why no further task starts; None when there is room."""
        self._disk_low = False
        self._unprotected = False

    @property
    def warning(self) -> str:
        """What people must see on every screen; '' when all is well."""
        notes = [self.waiting_for or ""] if self._disk_low else []
        notes += ["commands run without a sandbox"] if self._unprotected else []
        return "; ".join(note for note in notes if note)

    def nudge(self) -> None:
        """Something has changed that may let a task start."""
        self._nudged.set()

    def store_full(self) -> None:
        """A write found no room on the disk."""
        self._store_full = True
        self.nudge()

    def close(self) -> None:
        """No task starts from here on."""
        self._closed = True
        self.waiting_for = "the station stops"

    async def run(self) -> None:
        """Until cancelled. Raises what the store cannot get over."""
        while True:
            self._nudged.clear()
            wait_s = IDLE_S
            try:
                await self._fill()
                wait_s = min(IDLE_S, await self._until_next_start())
            except StoreFull:
                log.warning("the store has no room: no task starts until there is")
                self._store_full = True
                self._look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._nudged.wait()

    async def _fill(self) -> None:
        while not self._closed and self._look() is None:
            claim = await self._queue.claim(self._owner, LEASE_S)
            if claim is None:
                return
            if self._closed:
                return  # `release_all` gives it back
            self._unprotected = self._unprotected or claim.spec.sandbox == "none"
            log.info("%s: attempt %d starts%s", claim.task, claim.attempt, " again" if claim.resumed else "")
            self._runner.start(claim)

    def _look(self) -> str | None:
        """Take down why a task cannot start now."""
        free, floor = disk_space(self._home.path)
        if self._store_full and free >= floor:
            self._store_full = False
        room = Room(
            agents=self._agents,
            at_work=self._runner.at_work,
            engine_problem=self._engine_problem(),
            disk_free_bytes=free,
            disk_floor_bytes=floor,
            store_full=self._store_full,
        )
        if not self._closed:
            self.waiting_for = reason_to_wait(room)
        self._disk_low = free < floor or self._store_full
        return self.waiting_for

    async def _until_next_start(self) -> float:
        now = self._clock.time()
        at = await self._store.read(lambda db: lookups.next_start(db, now=now))
        return IDLE_S if at is None else max(0.05, at - now)
