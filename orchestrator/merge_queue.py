"""The merge queue: approved work lands on its target branch, one merge at a time.

Each merge is written down before the branch moves, so that one which landed just before a crash is recognised at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from orchestrator import lookups
from orchestrator.errors import UserError
from orchestrator.queue import merge_records
from orchestrator.queue.merge_records import MergeRecord, Merges
from orchestrator.store import Store, StoreFailed, StoreFull
from orchestrator.task import TaskSpec
from orchestrator.views import MergeView
from workspaces.errors import WorkspaceError
from workspaces.hub import open_hub
from workspaces.landing import land_merge, settle_landing
from workspaces.merge import Conflicts, Landed, Prepared, Refused, prepare_merge, target_tip

log = logging.getLogger(__name__)

TRIES = 3
"""A target that moves between preparing and landing (the user commits) is met again this often."""


class MergeQueue:
    def __init__(self, store: Store, records: Merges, *, hubs: Path) -> None:
        self._store = store
        self._records = records
        self._hubs = hubs
        self._group: asyncio.TaskGroup | None = None
        self._turn = asyncio.Lock()
        """Whoever asks first is first: the lock is fair."""
        self._closed = False

    async def merge(self, task: str) -> MergeView:
        """Waits until the merge has landed or was refused. UserError when the task is not approved or cannot be merged now.

        A caller that goes away meanwhile changes nothing: what was asked for is done.
        """
        assert self._group is not None, "run() has not begun"
        ended = await asyncio.shield(self._group.create_task(self._in_turn(task)))
        if isinstance(ended, UserError):
            raise ended
        return ended

    async def run(self) -> None:
        """Until cancelled: merges live in here (call `close` first, it waits for them). Raises what the store cannot get over."""
        async with asyncio.TaskGroup() as self._group:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Refuse what still waits, and wait for the merge that is under way."""
        self._closed = True
        async with self._turn:
            pass

    async def _in_turn(self, task: str) -> MergeView | UserError:
        """The refusal is a result: an error would end all that lives in the group."""
        async with self._turn:
            try:
                if self._closed:
                    return UserError("the station stops", hint="merge again once it is up")
                await self.recover()
                return await self._one(task)
            except UserError as refused:
                return refused
            except StoreFull:
                return UserError("no room on the disk to write the merge down", hint="make room, then look what has become of it")

    async def _one(self, task: str) -> MergeView:
        record = await self._records.begin(task)
        try:
            ended = await self._land(record)
        except WorkspaceError as failed:
            ended = Refused(reason=str(failed), hint=failed.hint)
        except StoreFailed:
            raise
        except Exception as fault:  # a fault of ours in one merge must not end all agents' work
            log.exception("%s: the merge failed", task)
            ended = Refused(reason=f"{type(fault).__name__}: {fault}", hint="this is a fault of Stationmaster's; its log has the details")
        match ended:
            case Landed():
                await self._records.landed(task, ended.commit)
                message = f"landed on {record.target} as {ended.commit[:12]}{f'; {ended.note}' if ended.note else ''}"
                return MergeView(task=task, state="merged", target=record.target, commit=ended.commit, message=message)
            case Conflicts():
                await self._records.refused(task, "conflicts", ended.paths)
                message = f"conflicts with {record.target}: nothing was changed"
                return MergeView(
                    task=task, state="conflicted", target=record.target, commit=None, message=message, conflicts=list(ended.paths)
                )
            case Refused():
                await self._records.refused(task, ended.reason)
                message = f"{ended.reason} ({ended.hint})" if ended.hint else ended.reason
                return MergeView(task=task, state="in-review", target=record.target, commit=None, message=message)

    async def _land(self, record: MergeRecord) -> Landed | Conflicts | Refused:
        spec = await self._store.read(lambda db: lookups.task_spec(db, record.task))
        hub = await open_hub(Path(record.repo), hubs=self._hubs, commit=spec.base_commit)
        refused = Refused(reason="the target branch keeps moving", hint="merge again")
        for _ in range(TRIES):
            prepared = await prepare_merge(
                hub, branch=record.target, base_commit=spec.base_commit, snapshot=record.snapshot_commit, message=_message(spec)
            )
            if not isinstance(prepared, Prepared):
                return prepared
            await self._records.prepared(record.task, target_commit=prepared.target_commit, commit=prepared.commit)
            ended = await land_merge(hub, prepared)
            if isinstance(ended, Landed) or not await self._moved(record, prepared):
                return ended
            refused = ended
        return refused

    async def _moved(self, record: MergeRecord, prepared: Prepared) -> bool:
        return await target_tip(Path(record.repo), record.target) != prepared.target_commit

    async def recover(self) -> None:
        """Settle merges of which the store does not know the end: those that the last station had under way, or that a full disk cut off.

        No merge may be under way.
        """
        for record in await self._store.read(merge_records.unfinished):
            landed = await self._has_landed(record)
            if landed is None:
                log.warning("%s: a git that the last station started is still at work on its merge", record.task)
            elif landed and record.commit is not None:
                log.info("%s: its merge had landed before that could be written down", record.task)
                await self._records.landed(record.task, record.commit)
            else:
                await self._records.refused(record.task, "it was cut off before it landed: merge again")

    async def _has_landed(self, record: MergeRecord) -> bool | None:
        if record.commit is None:
            return False
        try:
            return await settle_landing(Path(record.repo), hubs=self._hubs, branch=record.target, commit=record.commit)
        except WorkspaceError as failed:
            log.warning("%s: cannot tell whether its merge landed: %s", record.task, failed)
            return False


def _message(spec: TaskSpec) -> str:
    return f"{spec.title}\n\nTask: {spec.id}\n"
