"""The merge queue: approved work lands on its target branch, one merge at a time.

Each merge is written down before the branch moves, so that one which landed just before a crash is recognised at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from orchestrator import lookups, merges
from orchestrator.errors import UserError
from orchestrator.hubs import Hubs
from orchestrator.merges import MergeRecord, Merges
from orchestrator.store import Store, StoreFailed, StoreFull
from orchestrator.task import TaskSpec
from orchestrator.views import MergeView
from workspaces.errors import WorkspaceError
from workspaces.merge import Conflicts, Landed, Prepared, Refused, has_landed, land_merge, prepare_merge, target_tip

log = logging.getLogger(__name__)

TRIES = 3
"""A target that moves between preparing and landing (the user commits) is met again this often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    task: str
    done: asyncio.Future[MergeView]


class MergeQueue:
    def __init__(self, store: Store, records: Merges, hubs: Hubs) -> None:
        self._store = store
        self._records = records
        self._hubs = hubs
        self._orders: asyncio.Queue[_Order] = asyncio.Queue()
        self._busy = asyncio.Lock()
        self._unsettled = False

    async def merge(self, task: str) -> MergeView:
        """Waits until the merge has landed or was refused. UserError when the task is not approved or cannot be merged now."""
        row = await self._store.read(lambda db: lookups.task_row(db, task, now=0.0))
        if row.state == "merged":
            raise UserError(f"task {task} is merged already", hint=f"as {row.merged_commit}")
        if not row.approved:
            raise UserError(
                f"task {task} is not approved", hint=f"look at `stationmaster diff {task}`, then `stationmaster approve {task}`"
            )
        order = _Order(task=task, done=asyncio.get_running_loop().create_future())
        self._orders.put_nowait(order)
        return await order.done

    async def run(self) -> None:
        """Until cancelled; a merge that has begun is brought to its end first (see `close`)."""
        while True:
            order = await self._orders.get()
            try:
                async with self._busy:
                    if self._unsettled:
                        await self.recover()
                    view = await self._one(order.task)
            except UserError as refused:
                _answer(order, refused)
            except StoreFull:
                self._unsettled = True
                _answer(order, UserError("no room on the disk to write the merge down", hint="make room, then look what has become of it"))
            except BaseException:
                order.done.cancel()
                raise
            else:
                if not order.done.done():
                    order.done.set_result(view)

    async def close(self) -> None:
        """Refuse what still waits, and wait for the merge that is under way."""
        while not self._orders.empty():
            _answer(self._orders.get_nowait(), UserError("the station stops", hint="merge again once it is up"))
        async with self._busy:
            pass

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
                message = f"landed on {record.target} as {ended.commit[:12]}"
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
        hub = await self._hubs.open(record.repo, spec.base_commit)
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
        """Merges of which the store does not know the end: at start those that the last station had under way, later those that a full disk cut off."""
        for record in await self._store.read(merges.unfinished):
            try:
                landed = record.commit is not None and await has_landed(Path(record.repo), record.target, record.commit)
            except WorkspaceError as failed:
                log.warning("%s: cannot tell whether its merge landed: %s", record.task, failed)
                landed = False
            if landed and record.commit is not None:
                log.info("%s: its merge had landed before the last station ended", record.task)
                await self._records.landed(record.task, record.commit)
            else:
                await self._records.refused(record.task, "it was cut off before it landed")
        self._unsettled = False


def _answer(order: _Order, error: UserError) -> None:
    if not order.done.done():
        order.done.set_exception(error)


def _message(spec: TaskSpec) -> str:
    return f"{spec.title}\n\nTask: {spec.id}\n"
