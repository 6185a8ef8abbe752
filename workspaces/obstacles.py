"""What keeps a checkout of the user's from taking a merge.

Covers: work under way, uncommitted changes, files and submodules in the way. What lies there with exactly the merged content is not
in the way, whoever put it there: a merge that was killed half way leaves such files behind.
Does not cover: what the user does between this look and the merge. Git looks again, and refuses by itself.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workspaces.checkouts import Checkout, busy_with
from workspaces.errors import WorkspaceError
from workspaces.git import NAMES, complaint, failure
from workspaces.hub import Hub
from workspaces.merge import Prepared, Refused

NOTHING = "000000"
SUBMODULE = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a merge does at one path. Modes are git's; `NOTHING` where there is no file, `SUBMODULE` for another repository's commit."""

    old_mode: str
    new_mode: str
    new_blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirt:
    """A tracked path that differs from HEAD, as `git status` tells of it."""

    path: bytes
    conflicted: bool
    head: tuple[str, str]
    index: tuple[str, str]
    file_mode: str


async def changes_of(hub: Hub, prepared: Prepared) -> dict[bytes, Change]:
    """By path, as git has it. Renames are a removal and an addition."""
    arguments = ("diff-tree", "-r", "-z", "--raw", "--no-renames", prepared.target_commit, prepared.commit)
    fields = (await hub.git.run(*arguments)).split(b"\0")
    changes: dict[bytes, Change] = {}
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, _, new_blob, _ = header.decode().removeprefix(":").split()
        changes[path] = Change(old_mode=old_mode, new_mode=new_mode, new_blob=new_blob)
    return changes


def occupied(place: Checkout, branch: str) -> Refused | None:
    """Why nothing can be done in the checkout now, whatever the merge."""
    if place.path == place.git_dir:
        return Refused(
            reason=f"{branch} is checked out, but its git directory {place.git_dir} does not say where",
            hint=f"tell it: git --git-dir={place.git_dir} config core.worktree FOLDER",
        )
    if not place.path.is_dir():
        return Refused(reason=f"{branch} is checked out in {place.path}, which is gone", hint="forget that checkout: git worktree prune")
    doing = busy_with(place)
    if doing is not None:
        return Refused(
            reason=f"{branch} is checked out in {place.path}, in the middle of a {doing}", hint=f"finish or abort the {doing} there"
        )
    lock = place.git_dir / "index.lock"
    if lock.exists():
        return Refused(reason=f"another git is at work in {place.path}", hint=f"wait for it; if none is, remove {lock}, then merge again")
    return None


async def dirt_of(place: Checkout) -> tuple[Dirt, ...]:
    """The tracked paths that differ from HEAD. Work inside a submodule does not count. Raises GitFailed."""
    arguments = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty")
    return tuple(_parsed(entry) for entry in (await place.git.run(*arguments)).split(b"\0") if entry)


def _parsed(entry: bytes) -> Dirt:
    """`1 XY sub mH mI mW hH hI path`; for conflicts `u XY sub m1 m2 m3 mW h1 h2 h3 path`."""
    if entry.startswith(b"u "):
        fields = entry.split(b" ", 10)
        nothing = (NOTHING, "")
        return Dirt(path=fields[10], conflicted=True, head=nothing, index=nothing, file_mode=fields[6].decode())
    fields = entry.split(b" ", 8)
    _, _, _, head_mode, index_mode, file_mode, head_blob, index_blob = (field.decode() for field in fields[:8])
    return Dirt(path=fields[8], conflicted=False, head=(head_mode, head_blob), index=(index_mode, index_blob), file_mode=file_mode)


async def obstacle(place: Checkout, branch: str, changes: Mapping[bytes, Change]) -> Refused | dict[bytes, Change]:
    """Why the checkout cannot take these changes; else those that are there already, without git knowing it.

    The new blobs must be in the user's repository.
    """
    submodules = [path for path, change in changes.items() if change.old_mode == SUBMODULE and _filled(place.path, path)]
    if submodules:
        name = os.fsdecode(submodules[0])
        return Refused(
            reason=f"it changes the submodule {some(submodules)}, which is in use in {place.path}",
            hint=f"save what you need there, then: git -C {place.path} submodule deinit {name}",
        )
    try:
        dirt = await dirt_of(place)
        foreign = [entry.path for entry in dirt if not _on_the_way(entry, changes.get(entry.path))]
        if foreign:
            return _uncommitted(place, branch, foreign)
        tracked = [entry.path for entry in dirt if changes[entry.path].new_mode != NOTHING]
        known = {entry.path for entry in dirt}
        untracked = [path for path in _lying_about(place.path, changes) if path not in known]
        same = await _as_merged(place, {path: changes[path] for path in (*tracked, *untracked)})
    except WorkspaceError as error:
        return Refused(
            reason=f"git cannot tell whether {place.path} is clean: {error}", hint=error.hint or f"see: git -C {place.path} status"
        )
    if not same.issuperset(tracked):
        return _uncommitted(place, branch, [path for path in tracked if path not in same])
    if not same.issuperset(untracked):
        names = some([path for path in untracked if path not in same])
        return Refused(
            reason=f"files in {place.path} that git does not track are in the way ({names})", hint="move them away, then merge again"
        )
    return {path: changes[path] for path in same}


def _uncommitted(place: Checkout, branch: str, paths: Sequence[bytes]) -> Refused:
    return Refused(
        reason=f"{branch} is checked out in {place.path} with uncommitted changes ({some(paths)})",
        hint=f"commit or stash them: git -C {place.path} stash",
    )


def some(paths: Sequence[bytes]) -> str:
    """The first few, and how many more."""
    names = ", ".join(path.decode("utf-8", "backslashreplace") for path in paths[:NAMES])
    return f"{names} and {len(paths) - NAMES:,} more" if len(paths) > NAMES else names


def _on_the_way(dirt: Dirt, change: Change | None) -> bool:
    """Whether the path may be on its way to the merged content. What the file holds is not looked at."""
    if change is None or dirt.conflicted or SUBMODULE in {change.old_mode, change.new_mode}:
        return False
    staged = dirt.index == dirt.head or dirt.index == (change.new_mode, change.new_blob)
    return staged and (dirt.file_mode == NOTHING) == (change.new_mode == NOTHING)


def _filled(root: Path, path: bytes) -> bool:
    folder = root / os.fsdecode(path)
    if not _lies(root, path, {}):
        return False
    return not folder.is_dir() or any(folder.iterdir())


def _lying_about(root: Path, changes: Mapping[bytes, Change]) -> Iterator[bytes]:
    """Paths that the merge adds and where something lies. A folder is left for git to judge: it may go with what is in it."""
    folders: dict[bytes, bool] = {}
    for path, change in changes.items():
        if change.old_mode == NOTHING and _lies(root, path, folders) and not _is_folder(root, path):
            yield path


def _lies(root: Path, path: bytes, folders: dict[bytes, bool]) -> bool:
    """Whether something lies at the path itself, not only beyond a link. `folders` remembers which parents are real."""
    parent, _, _ = path.rpartition(b"/")
    if parent and parent not in folders:
        real = _lies(root, parent, folders)
        folders[parent] = real and _is_folder(root, parent)
    return (not parent or folders[parent]) and os.path.lexists(root / os.fsdecode(path))


def _is_folder(root: Path, path: bytes) -> bool:
    """Links are none."""
    return stat.S_ISDIR((root / os.fsdecode(path)).lstat().st_mode)


async def _as_merged(place: Checkout, changes: Mapping[bytes, Change]) -> set[bytes]:
    """Those whose file is exactly what the merge would write, by git's own comparison: content after the user's filters, and mode."""
    if not changes:
        return set()
    with tempfile.TemporaryDirectory(prefix="stationmaster-") as folder:
        git = place.git.with_index(Path(folder) / "index")
        await git.run("update-index", "-z", "--index-info", stdin=_entries(changes))
        arguments = ("update-index", "-q", "--refresh")
        done = await git.attempt(*arguments)  # 1 says that some differ
        if done.exit_code not in {0, 1}:
            raise failure(arguments, done)
        differ = set((await git.run("diff-files", "-z", "--name-only")).split(b"\0"))
    return {path for path in changes if path not in differ}


async def acknowledge(place: Checkout, changes: Mapping[bytes, Change]) -> Refused | None:
    """Tell the checkout's index of what is there already: git's merge then leaves it as it is. Changes no file."""
    if not changes:
        return None
    done = await place.git.attempt("update-index", "-z", "--index-info", stdin=_entries(changes))
    if done.exit_code == 0:
        return None
    return Refused(reason=f"the index of {place.path} cannot be written: {complaint(done)}", hint=f"see: git -C {place.path} status")


def _entries(changes: Mapping[bytes, Change]) -> bytes:
    return b"".join(b"%b %b\t%b\0" % (change.new_mode.encode(), change.new_blob.encode(), path) for path, change in changes.items())
