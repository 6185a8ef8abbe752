"""How a workspace differs from the snapshot index.

Git says what differs, and from there on each path is looked at without following links: git's own `ls-files` would take a
tracked folder that became a link for unchanged, and a nested repository for one entry.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from workspaces.errors import PathRefused, WorkspaceError
from workspaces.files import read_file
from workspaces.git import Git, failure
from workspaces.workspace import Workspace

NESTING = 32
"""How deep repositories may lie in each other before it is called an attack."""
INDEX_LIMIT_BYTES = 256 * 1024 * 1024

Kind = Literal["file", "folder", "none", "refused", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Paths relative to the workspace. `present` are files and links to be taken in as they are, `removed` entries to be dropped first.

    `left_out` are those that cannot be taken: unreadable, too deep for a path, or named as git holds nothing.
    """

    present: frozenset[bytes]
    removed: frozenset[bytes]
    left_out: frozenset[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorting:
    """The sets of `Changes` while they fill; `nested` are repositories whose files are still to be listed."""

    root: Path
    present: set[bytes] = field(default_factory=set[bytes])
    removed: set[bytes] = field(default_factory=set[bytes])
    nested: set[bytes] = field(default_factory=set[bytes])
    left_out: set[bytes] = field(default_factory=set[bytes])

    def untracked(self, path: bytes) -> None:
        match kind(self.root, path):
            case "file":
                self.present.add(path)
            case "unknown" | "refused":
                self.left_out.add(path)
            case "folder" | "none":
                pass  # changed since git has looked

    def tracked(self, path: bytes) -> None:
        match kind(self.root, path):
            case "file":
                self.present.add(path)
            case "folder":
                self.removed.add(path)
                self.nested.add(path)
            case "none" | "refused":
                self.removed.add(path)
            case "unknown":
                self.left_out.add(path)  # its last known content stands


async def find_changes(workspace: Workspace, submodules: Collection[str], *, look_for_forced: bool) -> Changes:
    """What the snapshot index has to be told. Raises GitFailed or WorkspaceError.

    `look_for_forced` asks the agent's own index for ignored files that it holds all the same.
    """
    sorting = _Sorting(root=workspace.path)
    listed = await _listing(workspace, sorting)
    if listed:  # in a thread: after a build these may be thousands
        await asyncio.to_thread(_classify, listed, sorting)
    filled = await _filled(workspace, submodules)
    sorting.removed.update(filled)
    sorting.nested.update(filled)
    if sorting.nested:
        sorting.present.update(await _files_of_nested(workspace, sorting))
    if look_for_forced:
        sorting.present.update(await _forced(workspace))
    return Changes(
        present=frozenset(sorting.present), removed=frozenset(sorting.removed), left_out=_outermost(sorting.left_out - sorting.present)
    )


def _outermost(paths: set[bytes]) -> frozenset[bytes]:
    """Without those that lie in another one of them."""
    return frozenset(path for path in paths if not any(path[: slash.start()] in paths for slash in re.finditer(b"/", path)))


def _classify(listed: Collection[bytes], sorting: _Sorting) -> None:
    """By what lies there now. The entries are `ls-files -t`'s."""
    for entry in listed:
        tag, path = entry[:1], entry[2:]
        if tag != b"?":
            sorting.tracked(path)
        elif path.endswith(b"/"):
            sorting.nested.add(path[:-1])
        else:
            sorting.untracked(path)


def kind(root: Path, path: bytes) -> Kind:
    """What lies at a path, no link followed. "none" also for what git cannot hold, or what only a link leads to.

    "refused" for a name under which git holds nothing, "unknown" for what cannot be read.
    """
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} or part.lower() == b".git" for part in parts):
        return "refused"
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
    except OSError:  # not ours to read, or the path is too long
        return "unknown"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "none"


async def _listing(workspace: Workspace, sorting: _Sorting) -> list[bytes]:
    """What is tracked and changed, untracked and not ignored, or a nested repository; each with its tag."""
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=workspace.index)
    arguments = ("ls-files", "-z", "-t", "--deleted", "--modified", "--others", "--exclude-standard")
    return [*_split(await _list(git, arguments, b"", sorting))]


async def _list(git: Git, arguments: tuple[str, ...], below: bytes, sorting: _Sorting) -> bytes:
    """Folders that git cannot read are passed over with a warning; they are the agent's, so they are ours to open.

    What git still warns of then (more nested folders than it may open files) is told as left out: a warning is no failure to git.
    """
    done = await git.attempt(*arguments)
    if not done.stderr and done.exit_code == 0:
        return done.stdout
    closed = await asyncio.to_thread(_open_folders, sorting.root, below)
    again = await git.attempt(*arguments)
    if again.exit_code != 0:
        raise failure(arguments, again)
    if again.stderr and not closed:
        closed = {below or b"."}
    sorting.left_out.update(closed)
    return again.stdout


def _split(out: bytes) -> Iterator[bytes]:
    return (entry for entry in out.split(b"\0") if entry)


def _open_folders(root: Path, below: bytes) -> set[bytes]:
    """Those that stay closed, or that lie too deep for any path. Repositories' own folders are passed over."""
    closed: set[bytes] = set()
    waiting = [below]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.fsencode(root) + b"/" + here) as entries:
                inner = [entry for entry in entries if entry.name != b".git" and entry.is_dir(follow_symlinks=False)]
            for entry in inner:
                waiting.append(here + b"/" + entry.name if here else entry.name)
                mode = entry.stat(follow_symlinks=False).st_mode
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    Path(os.fsdecode(entry.path)).chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        except OSError:
            closed.add(here)
    return closed


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


async def _files_of_nested(workspace: Workspace, sorting: _Sorting) -> set[bytes]:
    """The files in repositories inside the workspace, less what the workspace's own .gitignore names."""
    inner = _Sorting(root=workspace.path, left_out=sorting.left_out)
    for path in sorting.nested:
        await _nested_files(workspace, path, NESTING, inner)
    files = inner.present
    if not files:
        return files
    # This command knows no literal paths; "./" keeps it from reading magic into them.
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=workspace.index, env={"GIT_LITERAL_PATHSPECS": "0"})
    done = await git.attempt("check-ignore", "--no-index", "-z", "--stdin", stdin=b"".join(b"./%b\0" % file for file in files))
    if done.exit_code not in {0, 1}:
        raise failure(("check-ignore",), done)
    return files - {path.removeprefix(b"./") for path in _split(done.stdout)}


async def _nested_files(workspace: Workspace, path: bytes, depth: int, sorting: _Sorting) -> None:
    if depth == 0:
        raise WorkspaceError(f"{workspace.path} holds repositories nested more than {NESTING} deep")
    if kind(workspace.path, path) != "folder":
        sorting.left_out.add(path)
        return
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path / os.fsdecode(path), index=workspace.records / "no-index")
    for entry in _split(await _list(git, ("ls-files", "-z", "--others", "--exclude-standard"), path, sorting)):
        inner = path + b"/" + entry
        if entry.endswith(b"/"):
            await _nested_files(workspace, inner[:-1], depth - 1, sorting)
        else:
            sorting.untracked(inner)


async def _forced(workspace: Workspace) -> set[bytes]:
    """Files that .gitignore names but that the agent's own index holds: it wants them committed.

    Only a copy of that index is read, as data. A broken one says nothing, and that is no reason to fail: the agent may break it.
    """
    copy = workspace.records / "agent-index"
    if not await asyncio.to_thread(_copy_agent_index, workspace.path, copy):
        return set()
    git = Git(git_dir=workspace.hub.path, work_tree=workspace.path, index=copy)
    done = await git.attempt("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return {path for path in _split(done.stdout) if kind(workspace.path, path) == "file"} if done.exit_code == 0 else set()


def _copy_agent_index(root: Path, copy: Path) -> bool:
    try:
        copy.write_bytes(read_file(root, ".git/index", limit_bytes=INDEX_LIMIT_BYTES))
    except (OSError, PathRefused):
        return False
    return True
