"""From a snapshot to a commit that could be on the user's branch.

Computed in the hub, without a work tree; the user's repository is only read. `workspaces.landing` writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from workspaces.errors import RepositoryUnusable, WorkspaceError
from workspaces.git import Git, failure
from workspaces.hub import Hub, keep, user_git
from workspaces.snapshot import IDENTITY

MERGES = "refs/stationmaster/merges"


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
    """`note` says what a person should know all the same, '' when nothing."""

    commit: str
    note: str = ""


async def target_tip(repo: Path, branch: str) -> str:
    """The commit that `branch` of the user's repository points to. Raises RepositoryUnusable when there is no such branch."""
    done = await user_git(repo).attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{repo} has no branch {branch!r} to merge into", hint=f"see what there is: git -C {repo} branch")
    return done.stdout.decode().strip()


async def conflicts_with(hub: Hub, *, target_commit: str, snapshot: str) -> tuple[str, ...]:
    """The paths at which `snapshot` and `target_commit` conflict, () when they merge. Raises WorkspaceError, also when one is missing."""
    await keep(hub, target_commit)
    merged = await _merge(hub, target_commit, snapshot)
    return merged.paths if isinstance(merged, Conflicts) else ()


async def prepare_merge(hub: Hub, *, branch: str, base_commit: str, snapshot: str, message: str) -> Prepared | Conflicts | Refused:
    """One squash commit of everything since `base_commit`, on the branch's present tip. Raises WorkspaceError.

    Author and committer are the identity that the user's repository has configured, else Stationmaster.
    """
    try:
        tip = await target_tip(hub.repo, branch)
    except RepositoryUnusable as error:
        return Refused(reason=f"{error}", hint=error.hint)
    await keep(hub, tip)
    if not await _descends(hub.git, base_commit, tip):
        return Refused(
            reason=f"{branch} no longer holds {base_commit[:12]}, which the work is based on",
            hint="its history was rewritten: retry the task from the present branch",
        )
    tree = await _merge(hub, tip, snapshot)
    if isinstance(tree, Conflicts):
        return tree
    if tree == (await hub.git.run("rev-parse", f"{tip}^{{tree}}")).decode().strip():
        return Refused(reason=f"{branch} holds this change already", hint="")
    text = message.replace("\0", "").encode("utf-8", "backslashreplace")
    writing = Git(git_dir=hub.path, env=await _identity(hub.repo))
    commit = (await writing.run("commit-tree", tree, "-p", tip, "-F", "-", stdin=text)).decode().strip()
    await hub.git.run("update-ref", f"{MERGES}/{commit}", commit)
    return Prepared(target_branch=branch, target_commit=tip, commit=commit, tree=tree)


async def _merge(hub: Hub, ours: str, theirs: str) -> str | Conflicts:
    """The merged tree. Drivers that .gitattributes names do not exist here, so git's own merge is what counts."""
    if (await hub.git.attempt("cat-file", "-e", f"{theirs}^{{commit}}")).exit_code != 0:
        raise WorkspaceError(
            f"the snapshot {theirs[:12]} is not in {hub.path}", hint="that folder was removed or replaced: retry the task for a new attempt"
        )
    arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = await hub.git.attempt(*arguments)
    tree, *rest = done.stdout.split(b"\0")
    paths = [path.decode("utf-8", "backslashreplace") for path in rest if path]
    if done.exit_code == 0:
        return tree.decode().strip()
    # 1 is also what it exits with when it cannot find what it is to merge: then it names neither a tree nor paths.
    if done.exit_code != 1 or not re.fullmatch(rb"[0-9a-f]{40}", tree) or not paths:
        raise failure(arguments, done)
    return Conflicts(paths=tuple(dict.fromkeys(paths)))


async def _descends(git: Git, ancestor: str, commit: str) -> bool:
    arguments = ("merge-base", "--is-ancestor", ancestor, commit)
    done = await git.attempt(*arguments)
    if done.exit_code not in {0, 1}:
        raise failure(arguments, done)
    return done.exit_code == 0


async def _identity(repo: Path) -> dict[str, str]:
    """What the user would commit as; ours when nothing is configured. The environment is not asked: the station's is not the user's."""
    done = await user_git(repo).attempt("config", "-z", "--get-regexp", r"^user\.(name|email)$")
    pairs = (entry.decode("utf-8", "replace").split("\n", 1) for entry in done.stdout.split(b"\0") if b"\n" in entry)
    found = {key: value.strip() for key, value in pairs}
    if done.exit_code != 0 or not found.get("user.name") or not found.get("user.email"):
        return dict(IDENTITY)
    return {
        "GIT_AUTHOR_NAME": found["user.name"],
        "GIT_AUTHOR_EMAIL": found["user.email"],
        "GIT_COMMITTER_NAME": found["user.name"],
        "GIT_COMMITTER_EMAIL": found["user.email"],
    }
