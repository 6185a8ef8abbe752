"""The merge queue on a real repository, with a real store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clock import FakeClock
from orchestrator.errors import UserError
from orchestrator.eventlog import Journal
from orchestrator.events import Event, SnapshotTaken, StateChanged
from orchestrator.merge_queue import MergeQueue
from orchestrator.queue.decisions import Decisions
from orchestrator.queue.merge_records import Merges
from orchestrator.queue.queue import Queue
from orchestrator.store import Store
from workspaces.hub import open_hub
from workspaces.snapshot import take_snapshot
from workspaces.workspace import create_workspace


def git(repo: Path, *args: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = ["git", "-C", f"{repo}", "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout.strip()


class Yard:
    def __init__(self, folder: Path, store: Store, desk_class: Any) -> None:
        self.repo, self.hubs, self._root = folder / "repo", folder / "hubs", folder / "workspaces"
        self.repo.mkdir()
        git(self.repo, "init", "-qb", "main")
        git(self.repo, "commit", "-qm", "base", "--allow-empty")
        self._spec = desk_class.spec
        journal = Journal(store, FakeClock(), self._publish)
        self.queue, self.decisions, self.records = Queue(journal), Decisions(journal), Merges(journal)
        self.merging = MergeQueue(store, self.records, hubs=self.hubs)
        self.begun = asyncio.Event()
        self.moves: list[tuple[str | None, str]] = []

    def _publish(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event.fact, StateChanged):
                self.moves.append((event.task, event.fact.new))
                if event.fact.new == "merging":
                    self.begun.set()

    async def approved(self, task: str) -> None:
        """The task has written a file of its own name, and a person likes it."""
        base = git(self.repo, "rev-parse", "main")
        hub = await open_hub(self.repo, hubs=self.hubs, commit=base)
        workspace = await create_workspace(hub, root=self._root, task=task, attempt=1, base_commit=base)
        (workspace.path / task).write_text("done\n")
        snapshot = await take_snapshot(workspace, message=task)
        await self.queue.add([self._spec(task, repo=f"{self.repo}", base_commit=base)])
        claim = await self.queue.claim("station-1", 60)
        assert claim is not None
        await self.queue.move(claim, "preparing")
        await self.queue.move(claim, "running")
        await self.queue.record(claim, [SnapshotTaken(commit=snapshot.commit, files_changed=1, insertions=1, deletions=0, seconds=0.1)])
        await self.queue.move(claim, "claimed-done")
        await self.queue.verify(claim)
        await self.decisions.approve(task)

    def on_main(self) -> list[str]:
        return git(self.repo, "ls-tree", "--name-only", "main").split()


@contextlib.asynccontextmanager
async def yard(folder: Path, desk_class: Any) -> AsyncIterator[Yard]:
    async with await Store.open(folder / "station.db") as store:
        made = Yard(folder, store, desk_class)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(made.merging.run())
            await asyncio.sleep(0)
            yield made
            running.cancel()


async def test_merges_land_one_after_the_other_in_the_order_asked(tmp_path: Path, desk_class: Any) -> None:
    async with yard(tmp_path, desk_class) as made:
        for task in "abc":
            await made.approved(task)
        made.moves.clear()
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(made.merging.merge(task)) for task in "bac"]
        assert {view.result().state for view in asked} == {"merged"}
        assert made.moves == [(task, state) for task in "bac" for state in ("merging", "merged")]
        assert made.on_main() == ["a", "b", "c"]


async def test_a_caller_that_goes_away_does_not_cut_its_merge_off(tmp_path: Path, desk_class: Any) -> None:
    async with yard(tmp_path, desk_class) as made:
        await made.approved("a")
        asked = asyncio.ensure_future(made.merging.merge("a"))
        await made.begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await made.merging.close()
        assert (made.moves[-1], made.on_main()) == (("a", "merged"), ["a"])


async def test_a_stop_lets_the_merge_under_way_land_and_refuses_what_waits(tmp_path: Path, desk_class: Any) -> None:
    async with yard(tmp_path, desk_class) as made:
        await made.approved("a")
        await made.approved("b")
        under_way = asyncio.ensure_future(made.merging.merge("a"))
        await made.begun.wait()
        waiting = asyncio.ensure_future(made.merging.merge("b"))
        await asyncio.sleep(0)
        await made.merging.close()
        assert (await under_way).state == "merged"
        with pytest.raises(UserError, match="the station stops"):
            await waiting
        assert made.on_main() == ["a"]


async def test_a_refusal_ends_nothing_but_itself(tmp_path: Path, desk_class: Any) -> None:
    async with yard(tmp_path, desk_class) as made:
        await made.approved("a")
        with pytest.raises(UserError, match="there is no task x"):
            await made.merging.merge("x")
        assert (await made.merging.merge("a")).state == "merged"
        with pytest.raises(UserError, match="merged already") as again:
            await made.merging.merge("a")
        assert git(made.repo, "rev-parse", "main") in str(again.value)
        assert "git revert" in again.value.hint


async def test_a_merge_of_which_the_end_was_not_written_down_is_settled_before_the_next(tmp_path: Path, desk_class: Any) -> None:
    async with yard(tmp_path, desk_class) as made:
        await made.approved("a")
        await made.approved("b")
        await made.records.begin("a")
        assert (await made.merging.merge("b")).state == "merged"
        assert ("a", "in-review") in made.moves
        assert (await made.merging.merge("a")).state == "merged"
