"""The hub: the station's own bare clone of a repository, which holds bases and snapshots.

The user's repository is only read here. Objects are hard links, so a hub costs next to nothing, and the user's `gc` cannot take
them away.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where work starts. `branch` is the local branch a merge would land on, None when HEAD is detached and no branch was named.

    `repo` is the absolute top folder of the checkout (of the linked worktree, if it is one), or the bare repository itself.
    """

    commit: str
    branch: str | None
    repo: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """`path` is the bare repository, `repo` the user's, as `Base.repo`."""

    path: Path
    repo: Path

    @property
    def objects(self) -> Path:
        return self.path / "objects"


def hub_path(repo: Path, *, hubs: Path) -> Path:
    """Where the hub of `repo` lies, made or not; linked worktrees of one repository share it. Starts no process."""
    raise NotImplementedError


async def resolve_base(repo: Path, base: str | None) -> Base:
    """What `base` (a branch, tag, commit; None: HEAD) means in the repository around `repo` at this moment.

    Reads only. Raises RepositoryUnusable, with a hint, when there is no repository, no commit, no such ref, or git distrusts the owner.
    """
    raise NotImplementedError


async def open_hub(repo: Path, *, hubs: Path, commit: str) -> Hub:
    """The hub of `repo` below the folder `hubs`, made when missing, with `commit` in it and kept by a ref.

    Any number of callers, in this and other processes, may ask at once. Raises RepositoryUnusable, GitFailed or WorkspaceError.
    """
    raise NotImplementedError
