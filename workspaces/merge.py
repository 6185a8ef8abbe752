"""From a snapshot to a commit on the user's branch.

Computed in the hub, without a work tree. The user's repository is written by `land_merge` alone: a fast-forward in the checkout
that has the branch, or a compare-and-swap of the branch when no checkout has it. Hooks do not run, because the merged tree may
hold their scripts; the user's filters (Git LFS) do, because the user configured them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from workspaces.checkouts import Checkout, busy_with, checkouts, holds
from workspaces.errors import GitFailed, RepositoryUnusable
from workspaces.git import Git, complaint, failure
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
    commit: str


async def target_tip(repo: Path, branch: str) -> str:
    """The commit that `branch` of the user's repository points to. Raises RepositoryUnusable when there is no such branch."""
    done = await user_git(repo).attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{repo} has no branch {branch!r} to merge into", hint=f"see what there is: git -C {repo} branch")
    return done.stdout.decode().strip()


async def conflicts_with(hub: Hub, *, target_commit: str, snapshot: str) -> tuple[str, ...]:
    """The paths at which `snapshot` and `target_commit` conflict, () when they merge. Raises GitFailed."""
    await keep(hub, target_commit)
    merged = await _merge(hub, target_commit, snapshot)
    return merged.paths if isinstance(merged, Conflicts) else ()


async def prepare_merge(hub: Hub, *, branch: str, base_commit: str, snapshot: str, message: str) -> Prepared | Conflicts | Refused:
    """One squash commit of everything since `base_commit`, on the branch's present tip. Raises GitFailed.

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
    arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = await hub.git.attempt(*arguments)
    if done.exit_code not in {0, 1}:
        raise failure(arguments, done)
    tree, *paths = done.stdout.split(b"\0")
    if done.exit_code == 0:
        return tree.decode().strip()
    return Conflicts(paths=tuple(dict.fromkeys(path.decode("utf-8", "backslashreplace") for path in paths if path)))


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


async def land_merge(hub: Hub, prepared: Prepared) -> Landed | Refused:
    """Move the user's branch to the prepared commit, if that harms nobody.

    Landing what has landed already is `Landed`. Untracked and ignored files of the checkout are never overwritten.
    """
    branch = prepared.target_branch
    try:
        tip = await target_tip(hub.repo, branch)
        if await has_landed(hub.repo, branch, prepared.commit):
            return Landed(commit=prepared.commit)
        if tip != prepared.target_commit:
            return Refused(reason=f"{branch} has moved on since the merge was prepared", hint="review it again against the present branch")
        found = await checkouts(hub.repo)
    except RepositoryUnusable as error:
        return Refused(reason=f"{error}", hint=error.hint)
    owners = [place for place in found if holds(place, branch)]
    for place in owners:
        refusal = await _obstacle(place, branch)
        if refusal is not None:
            return refusal
    await _hand_over(hub, prepared)
    if owners:
        return await _fast_forward(hub, owners[0], prepared)
    return await _swap(hub, prepared)


async def _obstacle(place: Checkout, branch: str) -> Refused | None:
    """Why the checkout cannot take the commit now."""
    if not place.path.is_dir():
        return Refused(reason=f"{branch} is checked out in {place.path}, which is gone", hint="forget that checkout: git worktree prune")
    doing = busy_with(place)
    if doing is not None:
        return Refused(
            reason=f"{branch} is checked out in {place.path}, in the middle of a {doing}", hint=f"finish or abort the {doing} there"
        )
    if (place.git_dir / "index.lock").exists():
        return Refused(
            reason=f"another git is at work in {place.path}", hint=f"wait for it; if none is, remove {place.git_dir / 'index.lock'}"
        )
    done = await user_git(place.path).attempt(
        "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty"
    )
    if done.exit_code != 0:
        return Refused(reason=f"git cannot tell whether {place.path} is clean: {complaint(done)}", hint=f"see: git -C {place.path} status")
    changed = [entry[3:].decode("utf-8", "backslashreplace") for entry in done.stdout.split(b"\0") if entry]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        return Refused(
            reason=f"{branch} is checked out in {place.path} with uncommitted changes ({changed[0]}{more})",
            hint=f"commit or stash them: git -C {place.path} stash",
        )
    return None


async def _hand_over(hub: Hub, prepared: Prepared) -> None:
    """Give the user's repository the commit's objects; no ref of it changes."""
    source = f"{MERGES}/{prepared.commit}"
    await user_git(hub.repo).run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", f"{hub.path}", source)


async def _fast_forward(hub: Hub, place: Checkout, prepared: Prepared) -> Landed | Refused:
    branch = prepared.target_branch
    git = user_git(place.path)
    head = await git.attempt("symbolic-ref", "--quiet", "HEAD")
    if os.fsdecode(head.stdout).strip() != f"refs/heads/{branch}":
        return Refused(reason=f"{place.path} has just changed to another branch", hint="try again")
    done = await git.attempt(
        "merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures", "--quiet", "--no-stat", prepared.commit
    )
    # What counts is where the branch is now, not what the command said last.
    if await target_tip(hub.repo, branch) == prepared.commit:
        return Landed(commit=prepared.commit)
    return Refused(
        reason=f"the checkout {place.path} cannot be brought forward: {complaint(done)}",
        hint="move the files that are in the way, then merge again",
    )


async def _swap(hub: Hub, prepared: Prepared) -> Landed | Refused:
    branch = prepared.target_branch
    done = await user_git(hub.repo).attempt(
        "update-ref", "-m", "stationmaster: merge", f"refs/heads/{branch}", prepared.commit, prepared.target_commit
    )
    if done.exit_code == 0:
        return Landed(commit=prepared.commit)
    return Refused(reason=f"{branch} could not be moved: {complaint(done)}", hint="it may just have moved: review it again, then merge")


async def has_landed(repo: Path, branch: str, commit: str) -> bool:
    """Whether the branch's history holds `commit`. False also when repository, branch or commit is unknown there."""
    try:
        done = await user_git(repo).attempt("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}")
    except GitFailed:
        return False
    return done.exit_code == 0
