"""Clones of the hub that borrow its objects, with one of its commits checked out: workspaces, and fresh checkouts to run checks in.

Covers: no filter and no hook runs, whatever the commit holds; files under Git LFS stay pointers, submodules stay empty folders.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from workspaces.git import Git
from workspaces.hub import ATTRIBUTES, Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A commit's files, and nothing else. `path` is real (no symbolic link in it)."""

    path: Path
    hub: Hub


@asynccontextmanager
async def fresh_checkout(hub: Hub, *, path: Path, commit: str) -> AsyncGenerator[Checkout]:
    """`commit` at `path`, HEAD detached there; removed at the end. What lies at `path` already is removed first.

    Whatever is written there changes nothing elsewhere. Raises GitFailed when git cannot make it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Checkout(path=path.parent.resolve() / path.name, hub=hub)
    await _remove(made.path)
    try:
        index = made.path / ".git" / "index"
        index.parent.mkdir(mode=0o700, parents=True)
        await fill(hub, made.path, commit=commit, index=index, branch=None)
        yield made
    finally:
        await _remove(made.path)
        with contextlib.suppress(OSError):  # others of the task's lie there
            made.path.parent.rmdir()


async def fill(hub: Hub, folder: Path, *, commit: str, index: Path, branch: str | None) -> None:
    """Make an empty folder a repository with `commit` checked out on `branch` (None: HEAD is detached there).

    Checkout with the hub's git directory: nothing that the folder's own could hold is obeyed, and `index` has the times of the files just written.
    """
    await Git(git_dir=hub.path, work_tree=folder, index=index).run("read-tree", "--reset", "-u", commit)
    own = Git(cwd=folder)
    await own.run("init", "--quiet", "--template=", f"--initial-branch={branch or 'main'}", f"{folder}")
    _borrow(hub, folder / ".git")
    await own.run("update-ref", *(("--no-deref", "HEAD") if branch is None else (f"refs/heads/{branch}",)), commit)


def remove_tree(folder: Path) -> None:
    """Also folders that were locked against it, as by `chmod 0`. Blocks. What cannot be removed stays.

    By `rm`, because agents nest folders deeper than Python's own walk can follow.
    """
    _quietly("rm", "-rf", "--", f"{folder}")
    if folder.is_dir():
        _quietly("chmod", "-R", "u+rwx", "--", f"{folder}")
        _quietly("rm", "-rf", "--", f"{folder}")


def _quietly(*argv: str) -> None:
    subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _borrow(hub: Hub, git_dir: Path) -> None:
    (git_dir / "objects" / "info").mkdir(exist_ok=True)
    (git_dir / "objects" / "info" / "alternates").write_bytes(_alternate(hub.objects))
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES)
    shallow = hub.path / "shallow"
    if shallow.exists():
        shutil.copyfile(shallow, git_dir / "shallow")


def _alternate(objects: Path) -> bytes:
    """One line of `alternates`, which is quoted like a C string where the path would be misread."""
    raw = os.fsencode(objects)
    if raw[:1] in b'#"' or b"\n" in raw:
        raw = b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    return raw + b"\n"


async def _remove(path: Path) -> None:
    gone = _set_aside(path)
    if gone is not None:
        await asyncio.to_thread(remove_tree, gone)


def _set_aside(path: Path) -> Path | None:
    """A removal that goes on after its caller was cancelled must not meet what is made there next. None when nothing is there."""
    gone = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        return path.rename(gone)
    except FileNotFoundError:
        return None
