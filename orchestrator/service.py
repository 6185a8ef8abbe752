"""What a running station answers and does for its clients."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator import lookups
from orchestrator.api import HEARTBEAT_S
from orchestrator.bus import Bus, FellBehind
from orchestrator.endpoint import Endpoint
from orchestrator.eventlog import events_after, last_seq
from orchestrator.events import Event
from orchestrator.home import Home
from orchestrator.live_rows import RowBook
from orchestrator.merge_queue import MergeQueue
from orchestrator.metrics import TokenBook
from orchestrator.queue.decisions import Decisions
from orchestrator.queue.queue import Queue
from orchestrator.review import diff_document, subject
from orchestrator.runner import Runner
from orchestrator.scheduler import Scheduler
from orchestrator.store import Store
from orchestrator.task import TaskSpec
from orchestrator.trajectory_log import asked_attempt, log_document
from orchestrator.version import version
from orchestrator.views import DiffDocument, LogDocument, MergeView, Snapshot, StationView, StatusDocument, TaskDetail, TaskRow, Totals
from workspaces.errors import WorkspaceError
from workspaces.hub import Hub, open_hub
from workspaces.merge import target_tip

PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StationService:
    """`request_stop` is called by `stop`; `started_at` is in seconds since the epoch."""

    home: Home
    store: Store
    bus: Bus
    queue: Queue
    decisions: Decisions
    merging: MergeQueue
    rows: RowBook
    book: TokenBook
    endpoint: Endpoint
    scheduler: Scheduler
    runner: Runner
    agents: int
    started_at: float
    request_stop: Callable[[], None]

    async def status(self) -> StatusDocument:
        await self.rows.refresh()
        return StatusDocument(
            running=True,
            pid=os.getpid(),
            socket=str(self.home.socket()),
            version=version(),
            agents=self.agents,
            queue=self.rows.counts(),
            engine=self.endpoint.view(),
            home=str(self.home.path),
            totals=self._totals(),
            warning=self.scheduler.warning,
        )

    async def snapshot(self, after: int) -> Snapshot:
        seq = await self.rows.refresh()
        station = StationView(
            pid=os.getpid(),
            version=version(),
            home=str(self.home.path),
            started_at=self.started_at,
            agents=self.agents,
            warning=self.scheduler.warning,
        )
        return Snapshot(
            seq=seq,
            at=time.time(),
            station=station,
            engine=self.endpoint.view(),
            queue=self.rows.counts(),
            totals=self._totals(),
            tasks=self.rows.rows(after),
        )

    def _totals(self) -> Totals:
        tokens, server, paired = self.book.total(), self.endpoint.server.output_tokens, self.endpoint.counted_at_reading
        return Totals(
            input_tokens=tokens.input,
            cached_tokens=tokens.cached,
            output_tokens=tokens.output,
            server_output_tokens=server,
            unattributed_tokens=None if server is None or paired is None else server - paired,
            tokens_per_s=self.book.output_rate(),
            input_tokens_per_s=self.book.input_rate(),
            max_parallel=self.rows.max_parallel,
        )

    async def task(self, task: str) -> TaskDetail:
        return await self.rows.detail(task)

    async def log(self, task: str, *, attempt: int | None, step: int | None) -> LogDocument:
        found = await self.store.read(lambda db: asked_attempt(db, task, attempt))
        return await asyncio.to_thread(log_document, self.home, task, found, step)

    async def diff(self, task: str, *, since_last_look: bool) -> DiffDocument:
        of = await self.store.read(lambda db: subject(db, task, since_last_look=since_last_look))
        return await diff_document(of, open_hub=self._hub)

    async def _hub(self, repo: str, commit: str) -> Hub:
        return await open_hub(Path(repo), hubs=self.home.hubs, commit=commit)

    async def events(self, after: int, *, task: str | None, follow: bool) -> AsyncIterator[Sequence[Event]]:
        """Ends, with `follow`, when the reader has fallen behind or the station stops: the client comes back with its last `seq`.

        Without it at what there was when it was asked: while agents work, new facts come as fast as they are read.
        """
        newest = await self.store.read(last_seq)
        with self.bus.follow() as follower:
            while page := await self._page(after, task):
                yield page
                after = page[-1].seq
                if not follow and after >= newest:
                    break
            while follow:
                batch: list[Event] = []
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        batch = await follower.next()
                except TimeoutError:
                    pass
                except FellBehind:
                    return
                yield [event for event in batch if event.seq > after and (task is None or event.task == task)]

    async def _page(self, after: int, task: str | None) -> Sequence[Event]:
        return await self.store.read(lambda db: events_after(db, after, task=task, limit=PAGE_EVENTS))

    async def add(self, specs: Sequence[TaskSpec]) -> list[str]:
        await self.queue.add(specs)
        self.scheduler.nudge()
        return [spec.id for spec in specs]

    async def cancel(self, task: str) -> TaskRow:
        await self.decisions.cancel(task)
        self.runner.stop(task)
        return await self.rows.row(task)

    async def retry(self, task: str, comment: str) -> TaskRow:
        await self.decisions.retry(task, comment, base_commit=await self._present_base(task))
        self.scheduler.nudge()
        return await self.rows.row(task)

    async def _present_base(self, task: str) -> str | None:
        """Where a new attempt that a person asks for begins: at the target branch as it is now, so that a conflict can be mended.

        None when the task has no target branch, or it cannot be read: then the base stays.
        """
        spec = await self.store.read(lambda db: lookups.task_spec(db, task))
        if spec.target_branch is None:
            return None
        try:
            return await target_tip(Path(spec.repo), spec.target_branch)
        except WorkspaceError:
            return None

    async def approve(self, task: str) -> TaskRow:
        await self.decisions.approve(task)
        return await self.rows.row(task)

    async def reject(self, task: str, comment: str) -> TaskRow:
        await self.decisions.reject(task, comment, base_commit=await self._present_base(task))
        self.scheduler.nudge()
        return await self.rows.row(task)

    async def merge(self, task: str) -> MergeView:
        view = await self.merging.merge(task)
        self.scheduler.nudge()
        return view

    async def say(self, task: str, text: str) -> TaskRow:
        await self.decisions.say(task, text)
        row = await self.rows.row(task)
        if live := self.book.live((task, row.attempt)):
            live.has_mail = True
        return row

    async def look(self, task: str) -> TaskRow:
        await self.decisions.look(task)
        return await self.rows.row(task)

    def stop(self) -> None:
        self.request_stop()
