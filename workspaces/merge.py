"""From a snapshot to a commit on the user's branch.

Computed in the hub, without a work tree. The user's repository is written by `land_merge` alone: a fast-forward in the checkout
that has the branch, or a compare-and-swap of the branch when no checkout has it. Hooks do not run, because the merged tree may
hold their scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workspaces.hub import Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A commit on top of `target_commit`, in the hub, that nobody has landed yet."""

    target_branch: str
    target_commit: str
    commit: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicts:
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It cannot land as things stand; `hint` says what a person can do."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    commit: str


async def target_tip(repo: Path, branch: str) -> str:
    """The commit that `branch` of the user's repository points to. Raises RepositoryUnusable when there is no such branch."""
    raise NotImplementedError


async def conflicts_with(hub: Hub, *, target_commit: str, snapshot: str) -> tuple[str, ...]:
    """The paths at which `snapshot` and `target_commit` conflict, () when they merge. Raises GitFailed."""
    raise NotImplementedError


async def prepare_merge(hub: Hub, *, branch: str, base_commit: str, snapshot: str, message: str) -> Prepared | Conflicts | Refused:
    """One squash commit of everything since `base_commit`, on the branch's present tip. Raises GitFailed.

    Author and committer are the identity that the user's repository has configured, else Stationmaster.
    """
    raise NotImplementedError


async def land_merge(hub: Hub, prepared: Prepared) -> Landed | Refused:
    """Move the user's branch to the prepared commit, if that harms nobody.

    Landing what has landed already is `Landed`. Untracked and ignored files of the checkout are never overwritten.
    """
    raise NotImplementedError


async def has_landed(repo: Path, branch: str, commit: str) -> bool:
    """Whether the branch's history holds `commit`. False also when repository, branch or commit is unknown there."""
    raise NotImplementedError
