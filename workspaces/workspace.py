"""A workspace: a checkout of an agent's own, which borrows the hub's objects and shares nothing else with anyone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workspaces.hub import Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """`path` is real (no symbolic link in it). The station's own records about it lie in the hub, out of the agent's reach."""

    task: str
    attempt: int
    path: Path
    branch: str
    base_commit: str
    hub: Hub


async def create_workspace(hub: Hub, *, root: Path, task: str, attempt: int, base_commit: str) -> Workspace:
    """Make `root/<task>/<attempt>` with `base_commit` checked out on the branch `stationmaster/<task>-<attempt>`.

    No filter and no hook runs: files under Git LFS stay pointers, submodules stay empty folders. Nothing remains after a failure
    or a cancellation, and what a killed process left half made is taken away first.
    Raises WorkspaceError when the folder exists already, GitFailed when git cannot make it.
    """
    raise NotImplementedError


async def reopen_workspace(hub: Hub, *, root: Path, task: str, attempt: int, base_commit: str) -> Workspace:
    """The workspace that `create_workspace` made with the same arguments.

    Proven by the station's record, not by anything inside the folder. Raises WorkspaceError when it is not that workspace.
    """
    raise NotImplementedError
