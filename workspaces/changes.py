"""How a workspace differs from the snapshot index.

Git says what differs, and from there on each path is looked at without following links: git's own `ls-files` would take a
tracked folder that became a link for unchanged, and a nested repository for one entry.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workspaces.errors import PathRefused, WorkspaceError
from workspaces.files import read_file
from workspaces.git import Git, failure
from workspaces.workspace import Workspace

NESTING = 32
"""How deep repositories may lie in each other before it is called an attack."""
INDEX_LIMIT_BYTES = 256 * 1024 * 1024

Kind = Literal["file", "folder", "none", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Paths relative to the workspace. `present` are files and links to be taken in as they are, `removed` entries to be dropped first."""

    present: frozenset[bytes]
    removed: frozenset[bytes]

    def __bool__(self) -> bool:
        return bool(self.present or self.removed)


async def find_changes(workspace: Workspace, submodules: Collection[str], *, look_for_forced: bool) -> Changes:
    """What the snapshot index has to be told. Raises GitFailed or WorkspaceError.

    `look_for_forced` asks the agent's own index for ignored files that it holds all the same.
    """
    tracked, found, nested = await _listing(workspace)
    present: set[bytes] = set()
    removed: set[bytes] = set()
    if tracked or found:  # in a thread: after a build these may be thousands
        await asyncio.to_thread(_classify, workspace.path, tracked, found, present, removed, nested)
    filled = await _filled(workspace, submodules)
    removed |= filled
    nested |= filled
    if nested:
        present |= await _files_of_nested(workspace, nested)
    if look_for_forced:
        present |= await _forced(workspace)
    return Changes(present=frozenset(present), removed=frozenset(removed))


def _classify(root: Path, tracked: set[bytes], found: set[bytes], present: set[bytes], removed: set[bytes], nested: set[bytes]) -> None:
    """Sort what git found different into the last three, by what lies there now."""
    present |= {path for path in found if kind(root, path) == "file"}
    for path in tracked:
        match kind(root, path):
            case "file":
                present.add(path)
            case "folder":
                removed.add(path)
                nested.add(path)
            case "none":
                removed.add(path)
            case "unknown":
                pass  # unreadable: its last known content stands


def kind(root: Path, path: bytes) -> Kind:
    """What lies at a path, no link followed. "none" also for what git cannot hold, or what only a link leads to."""
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} or part.lower() == b".git" for part in parts):
        return "none"
    where = root
    mode = stat.S_IFDIR
    try:
        for part in parts:
            if not stat.S_ISDIR(mode):
                return "none"
            where = where / os.fsdecode(part)
            mode = where.lstat().st_mode
        if stat.S_ISREG(mode) and not os.access(where, os.R_OK):
            where.chmod(stat.S_IMODE(mode) | stat.S_IRUSR)
    except (FileNotFoundError, NotADirectoryError):
        return "none"
    except PermissionError:
        return "unknown"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "none"


async def _listing(workspace: Workspace) -> tuple[set[bytes], set[bytes], set[bytes]]:
    """(tracked and changed, untracked and not ignored, nested repositories)."""
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=workspace.index)
    arguments = ("ls-files", "-z", "-t", "--deleted", "--modified", "--others", "--exclude-standard")
    done = await git.attempt(*arguments)
    if done.stderr:
        # Folders without read permission are passed over with a warning; they are the agent's, so they are ours to open.
        _open_folders(workspace.path)
    out = await git.run(*arguments) if done.stderr or done.exit_code != 0 else done.stdout
    tracked: set[bytes] = set()
    found: set[bytes] = set()
    nested: set[bytes] = set()
    for entry in _split(out):
        tag, path = entry[:1], entry[2:]
        if tag != b"?":
            tracked.add(path)
        elif path.endswith(b"/"):
            nested.add(path[:-1])
        else:
            found.add(path)
    return tracked, found, nested


def _split(out: bytes) -> Iterator[bytes]:
    return (entry for entry in out.split(b"\0") if entry)


def _open_folders(root: Path) -> None:
    for folder, names, _ in os.walk(root):
        for name in names:
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                path.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


async def _filled(workspace: Workspace, submodules: Collection[str]) -> set[bytes]:
    """Submodules into whose empty folders somebody has put files, while the index still names another repository's commit there."""
    candidates = [path for path in submodules if _holds_something(workspace.path, os.fsencode(path))]
    if not candidates:
        return set()
    listed = await Git(git_dir=workspace.hub.path, index=workspace.index).run("ls-files", "--stage", "-z", "--", *candidates)
    return {entry.partition(b"\t")[2] for entry in _split(listed) if entry.startswith(b"160000 ")}


def _holds_something(root: Path, path: bytes) -> bool:
    if kind(root, path) != "folder":
        return False
    with os.scandir(root / os.fsdecode(path)) as entries:
        return any(entry.name != ".git" for entry in entries)


async def _files_of_nested(workspace: Workspace, nested: Collection[bytes]) -> set[bytes]:
    """The files in repositories inside the workspace, less what the workspace's own .gitignore names."""
    files: set[bytes] = set()
    for path in nested:
        files |= await _nested_files(workspace, path, NESTING)
    if not files:
        return files
    # This command knows no literal paths; "./" keeps it from reading magic into them.
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=workspace.index, env={"GIT_LITERAL_PATHSPECS": "0"})
    done = await git.attempt("check-ignore", "--no-index", "-z", "--stdin", stdin=b"".join(b"./%b\0" % file for file in files))
    if done.exit_code not in {0, 1}:
        raise failure(("check-ignore",), done)
    return files - {path.removeprefix(b"./") for path in _split(done.stdout)}


async def _nested_files(workspace: Workspace, path: bytes, depth: int) -> set[bytes]:
    if depth == 0:
        raise WorkspaceError(f"{workspace.path} holds repositories nested more than {NESTING} deep")
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path / os.fsdecode(path), index=workspace.records / "no-index")
    files: set[bytes] = set()
    for entry in _split(await git.run("ls-files", "-z", "--others", "--exclude-standard")):
        inner = path + b"/" + entry
        if entry.endswith(b"/"):
            files |= await _nested_files(workspace, inner[:-1], depth - 1)
        elif kind(workspace.path, inner) == "file":
            files.add(inner)
    return files


async def _forced(workspace: Workspace) -> set[bytes]:
    """Files that .gitignore names but that the agent's own index holds: it wants them committed.

    Only a copy of that index is read, as data. A broken one says nothing, and that is no reason to fail: the agent may break it.
    """
    try:
        content = read_file(workspace.path, ".git/index", limit_bytes=INDEX_LIMIT_BYTES)
    except (OSError, PathRefused):
        return set()
    copy = workspace.records / "agent-index"
    copy.write_bytes(content)
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=copy)
    done = await git.attempt("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return {path for path in _split(done.stdout) if kind(workspace.path, path) == "file"} if done.exit_code == 0 else set()
