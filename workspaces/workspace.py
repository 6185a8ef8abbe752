"""A workspace: a checkout of an agent's own, which borrows the hub's objects and shares nothing else with anyone."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workspaces.clone import fill
from workspaces.errors import WorkspaceError
from workspaces.git import Git
from workspaces.hub import Hub
from workspaces.lock import file_lock

TASK = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock(?:\.|$)|$))*")
"""Ids that are a folder's name and a part of a ref's name as they stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """`path` is real (no symbolic link in it). The station's own records about it lie in the hub, out of the agent's reach."""

    task: str
    attempt: int
    path: Path
    branch: str
    base_commit: str
    hub: Hub

    @property
    def records(self) -> Path:
        """The folder in the hub that holds the snapshot index and what else the station notes about this workspace."""
        return self.hub.path / "stationmaster" / self.task / f"{self.attempt}"

    @property
    def index(self) -> Path:
        """The index of the snapshots. The agent has another one of its own."""
        return self.records / "index"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a folder is the workspace it is taken for: it keeps its inode when it is renamed, a copy or a successor has another."""

    path: str
    inode: int
    branch: str
    base_commit: str
    submodules: tuple[str, ...]
    """Paths where the base commit names a commit of another repository; empty folders in the workspace."""


async def create_workspace(hub: Hub, *, root: Path, task: str, attempt: int, base_commit: str) -> Workspace:
    """Make `root/<task>/<attempt>` with `base_commit` checked out on the branch `stationmaster/<task>-<attempt>`.

    No filter and no hook runs: files under Git LFS stay pointers, submodules stay empty folders. Nothing remains after a failure
    or a cancellation, and what a killed process left half made is taken away first.
    Raises WorkspaceError when the folder exists already, GitFailed when git cannot make it.
    """
    workspace = _named(hub, root, task, attempt, base_commit)
    async with file_lock(workspace.records / "lock"):
        _refuse_existing(workspace.path)
        partial = workspace.path.with_name(f".{attempt}.partial")
        try:
            _begin(workspace, partial)
            await _fill(workspace, partial)
            await _settle(workspace, partial)
        except BaseException:
            await asyncio.to_thread(_roll_back, workspace, partial)
            raise
    return workspace


async def reopen_workspace(hub: Hub, *, root: Path, task: str, attempt: int, base_commit: str) -> Workspace:
    """The workspace that `create_workspace` made with the same arguments.

    Proven by the station's record, not by anything inside the folder. Raises WorkspaceError when it is not that workspace.
    """
    workspace = _named(hub, root, task, attempt, base_commit)
    marker = read_marker(workspace)
    expected = Marker(
        path=f"{workspace.path}", inode=marker.inode, branch=workspace.branch, base_commit=base_commit, submodules=marker.submodules
    )
    if marker != expected:
        raise WorkspaceError(f"{workspace.path} was made for something else: {marker.branch} on {marker.base_commit}")
    verify_folder(workspace, marker)
    return workspace


def read_marker(workspace: Workspace) -> Marker:
    """Raises WorkspaceError when the station has made no such workspace."""
    try:
        return msgspec.json.decode((workspace.records / "workspace.json").read_bytes(), type=Marker)
    except (OSError, msgspec.DecodeError) as error:
        raise WorkspaceError(f"no record of a workspace for {workspace.task}/{workspace.attempt} ({error})") from error


def verify_folder(workspace: Workspace, marker: Marker) -> None:
    """Raises WorkspaceError unless the folder is there and is the one that was made."""
    try:
        found = workspace.path.lstat()
    except OSError as error:
        raise WorkspaceError(
            f"{workspace.path} is gone: {error.strerror}", hint="retry the task: a new attempt gets a new workspace"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_ino != marker.inode or workspace.path.resolve() != workspace.path:
        raise WorkspaceError(f"{workspace.path} is not the folder that was made for {workspace.task}/{workspace.attempt}")


def _named(hub: Hub, root: Path, task: str, attempt: int, base_commit: str) -> Workspace:
    if not TASK.fullmatch(task) or attempt < 1:
        raise WorkspaceError(
            f"{task!r}/{attempt} cannot name a workspace",
            hint="letters, digits, '-', '_' and single dots, beginning with a letter or digit",
        )
    return Workspace(
        task=task,
        attempt=attempt,
        path=root.resolve() / task / f"{attempt}",
        branch=f"stationmaster/{task}-{attempt}",
        base_commit=base_commit,
        hub=hub,
    )


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise WorkspaceError(f"{path} exists already", hint="a workspace is made once; a new attempt gets another one")


def _begin(workspace: Workspace, partial: Path) -> None:
    shutil.rmtree(partial, ignore_errors=True)
    for leftover in (workspace.index, workspace.index.with_name("index.lock")):
        leftover.unlink(missing_ok=True)
    partial.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial.mkdir(mode=0o700)


async def _fill(workspace: Workspace, partial: Path) -> None:
    """The index of the checkout serves the snapshots and, copied, the agent."""
    await fill(workspace.hub, partial, commit=workspace.base_commit, index=workspace.index, branch=workspace.branch)
    shutil.copyfile(workspace.index, partial / ".git" / "index")


async def _settle(workspace: Workspace, partial: Path) -> None:
    listed = await Git(git_dir=workspace.hub.path, index=workspace.index).run("ls-files", "--stage", "-z")
    submodules = tuple(os.fsdecode(entry.partition(b"\t")[2]) for entry in listed.split(b"\0") if entry.startswith(b"160000 "))
    # The record first, then the name: a folder under its final name always has its record.
    marker = _marker(workspace, partial, submodules)
    await asyncio.to_thread(write_record, workspace.records / "workspace.json", msgspec.json.encode(marker), durable=True)
    # Not in a thread: a rename that goes on after its cancellation would undo the roll-back.
    _rename(partial, workspace.path)


def _marker(workspace: Workspace, partial: Path, submodules: tuple[str, ...]) -> Marker:
    return Marker(
        path=f"{workspace.path}",
        inode=partial.stat().st_ino,
        branch=workspace.branch,
        base_commit=workspace.base_commit,
        submodules=submodules,
    )


def _rename(partial: Path, final: Path) -> None:
    partial.rename(final)


def write_record(path: Path, data: bytes, *, durable: bool) -> None:
    """Replace a file in one step. `durable` waits for the disk: for what cannot be found out again after a power cut."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)


def _roll_back(workspace: Workspace, partial: Path) -> None:
    """Only what this call has made. The lock stays: another call may hold its file."""
    shutil.rmtree(partial, ignore_errors=True)
    for name in ("index", "index.lock", "workspace.json", "workspace.json.draft"):
        (workspace.records / name).unlink(missing_ok=True)
    try:
        partial.parent.rmdir()
    except OSError:
        return  # other attempts live there
