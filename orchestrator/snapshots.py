"""Snapshots of one attempt, taken beside the agent's next model call, and never beside its next tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from orchestrator.clock import Clock
from orchestrator.events import SnapshotTaken
from workspaces.snapshot import Snapshot, take_snapshot
from workspaces.workspace import Workspace


class SnapshotKeeper:
    """`store` gets each new snapshot; one that changed nothing is not stored again. An error in the background ends `group`."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        group: asyncio.TaskGroup,
        clock: Clock,
        store: Callable[[SnapshotTaken], Awaitable[None]],
        last_commit: str | None,
    ) -> None:
        self._workspace = workspace
        self._group = group
        self._clock = clock
        self._store = store
        self._last_commit = last_commit
        self._left_out: tuple[str, ...] = ()
        self._pending: asyncio.Task[Snapshot] | None = None

    def begin(self, message: str) -> None:
        """Start one; the caller sees to it that nothing writes to the workspace before `settle` has returned."""
        self._pending = self._group.create_task(self._take(message))

    async def settle(self) -> None:
        """Wait for the one that is under way, if any."""
        pending, self._pending = self._pending, None
        if pending is not None:
            await pending

    async def take(self, message: str) -> Snapshot:
        await self.settle()
        return await self._take(message)

    async def _take(self, message: str) -> Snapshot:
        started = self._clock.monotonic()
        made = await take_snapshot(self._workspace, message=message)
        if made.commit != self._last_commit or made.left_out != self._left_out:
            self._last_commit, self._left_out = made.commit, made.left_out
            await self._store(
                SnapshotTaken(
                    commit=made.commit,
                    files_changed=made.files_changed,
                    insertions=made.insertions,
                    deletions=made.deletions,
                    seconds=self._clock.monotonic() - started,
                    left_out=made.left_out,
                )
            )
        return made
