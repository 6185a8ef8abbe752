"""The checkouts of the user's repository: where each one lies, which branch it has, and what it is in the middle of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workspaces.errors import RepositoryUnusable
from workspaces.git import Git, complaint
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
DEREFERENCES = 5
"""As many as git follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """`ref` is the full name of its branch, None when HEAD is detached. `path` may be gone."""

    path: Path
    git_dir: Path
    ref: str | None

    @property
    def git(self) -> Git:
        """Git in this checkout, with the user's configuration. Told where things are: files and git directory need not lie together."""
        return Git(git_dir=self.git_dir, work_tree=self.path, cwd=self.path, user_config=True)


async def full_name(git: Git, ref: str) -> str:
    """The ref that `ref` stands for, itself when it is not symbolic."""
    for _ in range(DEREFERENCES):
        done = await git.attempt("symbolic-ref", "--quiet", ref)
        if done.exit_code != 0:
            break
        ref = os.fsdecode(done.stdout).strip()
    return ref


async def checkouts(repo: Path) -> tuple[Checkout, ...]:
    """The main checkout (unless the repository is bare) and the linked ones. Raises RepositoryUnusable."""
    done = await user_git(repo).attempt("worktree", "list", "--porcelain", "-z")
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{repo} does not say what is checked out: {complaint(done)}", hint=f"see: git -C {repo} worktree list")
    common = common_dir(repo)
    found = tuple(_told(os.fsdecode(done.stdout), common))
    main = await _main_path(repo, common) if any(place.git_dir == common for place in found) else None
    return tuple(replace(place, path=main) if main is not None and place.git_dir == common else place for place in found)


async def _main_path(repo: Path, common: Path) -> Path | None:
    """Where the main checkout lies: git's list guesses it from the git directory's place. None when that is the best guess."""
    done = await user_git(repo).attempt("rev-parse", "--absolute-git-dir", "--show-toplevel")
    git_dir, _, top = os.fsdecode(done.stdout).removesuffix("\n").partition("\n")
    if done.exit_code == 0 and Path(git_dir) == common:  # both are real
        return Path(top)
    configured = await Git(git_dir=common).attempt("config", "--get", "core.worktree")
    return common / os.fsdecode(configured.stdout).removesuffix("\n") if configured.exit_code == 0 else None


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
        yield Checkout(path=path, git_dir=git_dirs.get(path.resolve(), common), ref=values.get("branch"))


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


def holds(place: Checkout, ref: str) -> bool:
    """Whether the checkout has the branch of this full name, also while a rebase or a bisect of it has HEAD detached."""
    if place.ref == ref:
        return True
    for name in ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name", "BISECT_START"):
        try:
            said = (place.git_dir / name).read_text(errors="surrogateescape").splitlines()
        except OSError:
            continue
        if ref in said or ref.removeprefix("refs/heads/") in said:
            return True
    return False
