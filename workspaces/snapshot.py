"""Snapshots: a commit of everything in a workspace, made without asking the workspace's `.git` for anything.

Covers: git runs with the hub's directory, the workspace as its work tree, and an index of the station's own; so configuration,
filters, hooks, fsmonitor and a `.git` that points elsewhere are never obeyed, and commits, a detached HEAD, a lost `.git`
or a left-over lock of the agent change nothing. The files of nested repositories are taken in as files.
Does not cover: files that `.gitignore` names (unless the agent forced them into its own index), and empty folders.
"""

from __future__ import annotations

from dataclasses import dataclass

from workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The counts compare with the base commit, with renames detected, as the diff shows them; binary files count no lines."""

    commit: str
    tree: str
    files_changed: int
    insertions: int
    deletions: int


async def take_snapshot(workspace: Workspace, *, message: str) -> Snapshot:
    """Commit the workspace as it is now at `refs/stationmaster/snapshots/<task>/<attempt>` in the hub.

    The parent is the attempt's snapshot before, at first the base commit. When nothing has changed since the last one, that one is
    returned and nothing is written. Calls for one workspace wait for each other. Raises GitFailed or WorkspaceError.
    """
    raise NotImplementedError
