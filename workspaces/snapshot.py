"""Snapshots: a commit of everything in a workspace, made without asking the workspace's `.git` for anything.

Covers: git runs with the hub's directory, the workspace as its work tree, and an index of the station's own; so configuration,
filters, hooks, fsmonitor and a `.git` that points elsewhere are never obeyed, and commits, a detached HEAD, a lost `.git`
or a left-over lock of the agent change nothing. The files of nested repositories are taken in as files.
Does not cover: files that `.gitignore` names (unless the agent forced them into its own index), and empty folders. What git cannot
hold, or nobody can read, is left out and said to be.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from workspaces.changes import Changes, find_changes
from workspaces.errors import GitFailed
from workspaces.git import DIFF_OPTIONS, Git, failure, read_commit
from workspaces.lock import file_lock
from workspaces.workspace import Workspace, read_marker, verify_folder, write_record

IDENTITY = {
    "GIT_AUTHOR_NAME": "Stationmaster",
    "GIT_AUTHOR_EMAIL": "stationmaster@localhost",
    "GIT_COMMITTER_NAME": "Stationmaster",
    "GIT_COMMITTER_EMAIL": "stationmaster@localhost",
}
NOTHING = "0" * 40
NAMES = 20
NAME_CHARACTERS = 120
SNAPSHOTS = "refs/stationmaster/snapshots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The counts compare with the base commit, with renames detected, as the diff shows them; binary files count no lines.

    `left_out` names what could not be taken, with names too long cut: at most 20, and an "and N more" after them.
    """

    commit: str
    tree: str
    files_changed: int
    insertions: int
    deletions: int
    left_out: tuple[str, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The last snapshot, and the index as it was then. An index that looks otherwise belongs to a snapshot that was never finished."""

    snapshot: Snapshot
    index: tuple[int, int, int]
    agent_index: tuple[int, int, int]


async def take_snapshot(workspace: Workspace, *, message: str) -> Snapshot:
    """Commit the workspace as it is now at `refs/stationmaster/snapshots/<task>/<attempt>` in the hub.

    The parent is the attempt's snapshot before, at first the base commit. When nothing has changed since the last one, that one is
    returned and nothing is written. Calls for one workspace wait for each other. Raises GitFailed or WorkspaceError.
    """
    async with file_lock(workspace.records / "lock"):
        marker = read_marker(workspace)
        verify_folder(workspace, marker)
        await _sound_index(workspace)
        last = _last(workspace)
        agent_index = _signature(workspace.path / ".git" / "index")
        changes = await find_changes(workspace, marker.submodules, look_for_forced=last is None or last.agent_index != agent_index)
        if last is not None and _nothing_new(workspace, last, changes, agent_index):
            return last.snapshot
        left_out = _told(changes.left_out | await _update_index(workspace, changes))
        tree = (await _git(workspace).run("write-tree")).decode().strip()
        snapshot = last.snapshot if last is not None and last.snapshot.tree == tree else await _commit(workspace, last, tree, message)
        snapshot = replace(snapshot, left_out=left_out)
        _remember(workspace, snapshot, agent_index)
        return snapshot


def _nothing_new(workspace: Workspace, last: Record, changes: Changes, agent_index: tuple[int, int, int]) -> bool:
    if changes.present or changes.removed or _told(changes.left_out) != last.snapshot.left_out:
        return False
    return last.index == _signature(workspace.index) and last.agent_index == agent_index


def _told(paths: frozenset[bytes]) -> tuple[str, ...]:
    names = [path.decode("utf-8", "backslashreplace") for path in sorted(paths)[:NAMES]]
    told = [name if len(name) <= NAME_CHARACTERS else f"{name[:NAME_CHARACTERS]}…" for name in names]
    return tuple([*told, f"and {len(paths) - NAMES:,} more"] if len(paths) > NAMES else told)


def _git(workspace: Workspace) -> Git:
    return Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=workspace.index)


async def _sound_index(workspace: Workspace) -> None:
    """An index that can be worked with: no lock of a git that was killed (the caller holds ours), and seeded when it was lost."""
    workspace.index.with_name("index.lock").unlink(missing_ok=True)
    if not _signature(workspace.index)[1]:
        await _git(workspace).run("read-tree", await _parent(workspace))


def _last(workspace: Workspace) -> Record | None:
    """None at first, and when the record does not agree with the hub: then the tree is computed again."""
    try:
        record = msgspec.json.decode((workspace.records / "snapshot.json").read_bytes(), type=Record)
        ref = (workspace.hub.path / _ref(workspace)).read_text().strip()
    except (OSError, msgspec.DecodeError):
        return None
    return record if record.snapshot.commit == ref else None


def _remember(workspace: Workspace, snapshot: Snapshot, agent_index: tuple[int, int, int]) -> None:
    record = Record(snapshot=snapshot, index=_signature(workspace.index), agent_index=agent_index)
    write_record(workspace.records / "snapshot.json", msgspec.json.encode(record), durable=False)


def _signature(path: Path) -> tuple[int, int, int]:
    """(time of change in ns, size in bytes, inode); zeros when there is no such file."""
    try:
        found = path.lstat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


async def _update_index(workspace: Workspace, changes: Changes) -> frozenset[bytes]:
    """The paths that git would not take on account of their names."""
    git = _git(workspace)
    if changes.removed:
        await git.run("update-index", "-z", "--force-remove", "--stdin", stdin=_lines(changes.removed))
    if changes.present:
        arguments = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        done = await git.attempt(*arguments, stdin=_lines(changes.present))
        if done.exit_code != 0:
            raise failure(arguments, done)
        said = set(done.stderr.split(b"\n")) if b"Ignoring path " in done.stderr else set[bytes]()
        return frozenset(path for path in changes.present if said and b"Ignoring path " + path.partition(b"\n")[0] in said)
    return frozenset()


def _lines(paths: frozenset[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def _ref(workspace: Workspace) -> str:
    return f"{SNAPSHOTS}/{workspace.task}/{workspace.attempt}"


async def _parent(workspace: Workspace) -> str:
    """The snapshot before, or the base commit."""
    path = workspace.hub.path / _ref(workspace)
    try:
        return await asyncio.to_thread(lambda: path.read_text().strip())
    except FileNotFoundError:
        return workspace.base_commit


async def _commit(workspace: Workspace, last: Record | None, tree: str, message: str) -> Snapshot:
    hub = workspace.hub
    commit = parent = await _parent(workspace)
    first = parent == workspace.base_commit
    # Without a record of the snapshot before, the hub has to say whether it was this tree already.
    if first or last is not None or (await read_commit(hub.path, parent)).tree != tree:
        writing = Git(git_dir=hub.path, env=IDENTITY)
        text = message.replace("\0", "").encode("utf-8", "backslashreplace")
        commit = (await writing.run("commit-tree", tree, "-p", parent, "-F", "-", stdin=text)).decode().strip()
        await writing.run("update-ref", _ref(workspace), commit, NOTHING if first else parent)
    files, insertions, deletions = await count_changes(hub.path, workspace.base_commit, tree)
    return Snapshot(commit=commit, tree=tree, files_changed=files, insertions=insertions, deletions=deletions)


async def count_changes(hub: Path, old: str, new: str) -> tuple[int, int, int]:
    """(files changed, lines inserted, lines deleted) between two trees or commits, renames detected."""
    said = (await Git(git_dir=hub).run("diff-tree", "-r", "--shortstat", *DIFF_OPTIONS, old, new)).decode()
    if not said.strip():
        return 0, 0, 0
    counts = {word[0]: int(number) for number, word in re.findall(r"(\d+) (file|insertion|deletion)", said)}
    if "f" not in counts:
        raise GitFailed(("git", "diff-tree", "--shortstat"), 0, f"unexpected output: {said[:200]}")
    return counts["f"], counts.get("i", 0), counts.get("d", 0)
