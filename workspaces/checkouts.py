"""The checkouts of the user's repository: which branch each one has, and what it is in the middle of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workspaces.errors import RepositoryUnusable
from workspaces.git import complaint
from workspaces.hub import common_dir, user_git

UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
    "sequencer": "sequence of picks",
}
"""What lies in a checkout's git directory while git waits there for its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """`branch` is None when HEAD is detached. `path` may be gone."""

    path: Path
    git_dir: Path
    branch: str | None


async def checkouts(repo: Path) -> tuple[Checkout, ...]:
    """The main checkout (unless the repository is bare) and the linked ones. Raises RepositoryUnusable."""
    done = await user_git(repo).attempt("worktree", "list", "--porcelain", "-z")
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{repo} does not say what is checked out: {complaint(done)}", hint=f"see: git -C {repo} worktree list")
    return tuple(_told(os.fsdecode(done.stdout), common_dir(repo)))


def _told(listing: str, common: Path) -> Iterator[Checkout]:
    git_dirs = {path.resolve(): git_dir for path, git_dir in _linked(common)}
    for block in listing.split("\0\0"):
        values: dict[str, str] = {}
        for line in block.split("\0"):
            key, _, value = line.partition(" ")
            values[key] = value
        if "worktree" not in values or "bare" in values:
            continue
        path = Path(values["worktree"])
        branch = values["branch"].removeprefix("refs/heads/") if "branch" in values else None
        yield Checkout(path=path, git_dir=git_dirs.get(path.resolve(), common), branch=branch)


def _linked(common: Path) -> Iterator[tuple[Path, Path]]:
    """(checkout, its git directory) of every linked worktree, from git's own notes."""
    folder = common / "worktrees"
    for git_dir in sorted(folder.iterdir()) if folder.is_dir() else []:
        note = git_dir / "gitdir"
        if note.is_file():
            yield Path(note.read_text(errors="surrogateescape").strip()).parent, git_dir


def busy_with(place: Checkout) -> str | None:
    """What git is in the middle of there, in a word; None when nothing."""
    return next((word for name, word in UNDER_WAY.items() if (place.git_dir / name).exists()), None)


def holds(place: Checkout, branch: str) -> bool:
    """Whether the checkout has the branch, also while a rebase or a bisect of it has HEAD detached."""
    if place.branch == branch:
        return True
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            said = (place.git_dir / name).read_text(errors="surrogateescape").strip()
        except OSError:
            continue
        if said.removeprefix("refs/heads/") == branch:
            return True
    return False
