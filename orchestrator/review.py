"""What a person sees of an attempt's work: the diff from its base (or from the last look) and what a merge would meet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from orchestrator import lookups
from orchestrator.errors import UserError
from orchestrator.store import Database
from orchestrator.task import TaskSpec
from orchestrator.views import DiffDocument, FileView, HunkView
from workspaces.diff import FileDiff, diff_commits
from workspaces.errors import WorkspaceError
from workspaces.hub import Hub
from workspaces.merge import conflicts_with, target_tip


class Subject:
    """A task under review: its specification, the snapshot, and where the diff starts."""

    def __init__(self, spec: TaskSpec, snapshot: str, start: str) -> None:
        self.spec = spec
        self.snapshot = snapshot
        self.start = start


def subject(db: Database, task: str, *, since_last_look: bool) -> Subject:
    """UserError when there is no such task, or nothing to look at yet."""
    spec = lookups.task_spec(db, task)
    newest = lookups.attempt(db, task)
    if newest is None or newest.snapshot_commit is None:
        raise UserError(f"task {task} has no snapshot yet", hint=f"`stationmaster show {task}` tells what it does")
    look = lookups.last_look(db, task) if since_last_look else None
    return Subject(spec, newest.snapshot_commit, look.snapshot_commit if look else spec.base_commit)


async def diff_document(of: Subject, *, open_hub: Callable[[str, str], Awaitable[Hub]]) -> DiffDocument:
    """`open_hub(repo, commit)` gives the hub with `commit` in it. A target that cannot be read counts as moved, with no conflicts known."""
    hub = await open_hub(of.spec.repo, of.spec.base_commit)
    files = await diff_commits(hub.path, of.start, of.snapshot)
    moved, conflicts = await _target(of, open_hub)
    return DiffDocument(
        task=of.spec.id,
        base_commit=of.spec.base_commit,
        snapshot_commit=of.snapshot,
        target=of.spec.target_branch,
        target_moved=moved,
        conflicts=conflicts,
        files=[file_view(file) for file in files],
    )


async def _target(of: Subject, open_hub: Callable[[str, str], Awaitable[Hub]]) -> tuple[bool, list[str]]:
    if of.spec.target_branch is None:
        return False, []
    try:
        tip = await target_tip(Path(of.spec.repo), of.spec.target_branch)
        if tip == of.spec.base_commit:
            return False, []
        hub = await open_hub(of.spec.repo, tip)
        return True, list(await conflicts_with(hub, target_commit=tip, snapshot=of.snapshot))
    except WorkspaceError:
        return True, []


def file_view(file: FileDiff) -> FileView:
    return FileView(
        path=file.path,
        old_path=file.old_path,
        status=file.status,
        old_mode=file.old_mode,
        new_mode=file.new_mode,
        binary=file.binary,
        insertions=file.insertions,
        deletions=file.deletions,
        hunks=[HunkView(id=hunk.id, header=hunk.header, lines=list(hunk.lines)) for hunk in file.hunks],
        note=file.note,
    )
