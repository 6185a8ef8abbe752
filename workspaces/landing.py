"""Prepared merges come onto the user's branch: the only place that writes the user's repository.

A fast-forward in the checkout that has the branch, or a compare-and-swap of the branch when no checkout has it. Hooks do not run,
because the merged tree may hold their scripts; the user's filters (Git LFS) do, because the user configured them.

Covers: a station that is killed meanwhile (git goes on, and holds the repository's lock until it has ended), a git that was killed
half way, branches under two names or in two checkouts, and settings of the user that make a merge something else.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from workspaces.checkouts import Checkout, checkouts, full_name, holds
from workspaces.errors import GitFailed, RepositoryUnusable, WorkspaceError
from workspaces.git import Git, complaint
from workspaces.hub import Hub, hub_path, user_git
from workspaces.lock import LockHeld, file_lock
from workspaces.merge import MERGES, Landed, Prepared, Refused, target_tip
from workspaces.obstacles import acknowledge, changes_of, dirt_of, obstacle, occupied, some

PATIENCE_S = 30.0
"""How long the git of a station that was killed is waited for."""


async def land_merge(hub: Hub, prepared: Prepared, *, patience_s: float = PATIENCE_S) -> Landed | Refused:
    """Move the user's branch to the prepared commit, if that harms nobody.

    Landing what has landed already is `Landed`. No untracked, ignored or uncommitted content of a checkout is ever overwritten.
    Once files are being written, a cancellation waits until they are. Raises WorkspaceError.
    """
    try:
        async with _turn(hub.path, patience_s) as turn:
            return await _land(hub, prepared, turn)
    except LockHeld:
        return Refused(reason=f"git is still at work on an earlier merge into {hub.repo}", hint="merge again when it has ended")


def _turn(hub: Path, patience_s: float) -> AbstractAsyncContextManager[int]:
    return file_lock(hub.with_suffix(".landing"), timeout_s=patience_s)


async def _land(hub: Hub, prepared: Prepared, turn: int) -> Landed | Refused:
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
    ref = await full_name(user_git(hub.repo), f"refs/heads/{branch}")
    if not ref.startswith("refs/heads/"):
        return Refused(reason=f"{branch} stands for {ref}, which is no branch", hint="give the task a `base` that is a branch")
    match [place for place in found if holds(place, ref)]:
        case []:
            await _hand_over(hub, prepared)
            return await _swap(hub, prepared, ref)
        case [place]:
            return await _bring_forward(hub, place, prepared, ref, turn)
        case places:
            where = " and ".join(f"{place.path}" for place in places)
            return Refused(reason=f"{branch} is checked out more than once: in {where}", hint="change all but one to another branch")


async def _hand_over(hub: Hub, prepared: Prepared) -> None:
    """Give the user's repository the commit's objects; no ref of it changes."""
    source = f"{MERGES}/{prepared.commit}"
    await user_git(hub.repo).run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", f"{hub.path}", source)


async def _bring_forward(hub: Hub, place: Checkout, prepared: Prepared, ref: str, turn: int) -> Landed | Refused:
    branch = prepared.target_branch
    refusal = occupied(place, branch)
    if refusal is not None:
        return refusal
    await _hand_over(hub, prepared)
    there = await obstacle(place, branch, await changes_of(hub, prepared))
    if isinstance(there, Refused):
        return there
    if await full_name(place.git, "HEAD") != ref:
        return Refused(reason=f"{place.path} has just changed to another branch", hint="try again")
    refusal = await acknowledge(place, there)
    return refusal if refusal is not None else await _fast_forward(hub, place, prepared, ref, turn)


async def _fast_forward(hub: Hub, place: Checkout, prepared: Prepared, ref: str, turn: int) -> Landed | Refused:
    done = await _merging(place, ref).see_through(
        "merge", "--ff-only", "--strategy=ort", "--no-squash", "--no-overwrite-ignore", "--no-autostash", "--no-verify-signatures",
        "--quiet", "--no-progress", "--no-stat", prepared.commit, pass_fds=(turn,),
    )  # fmt: skip
    # What counts is where the branch is now, not what the command said last.
    if await has_landed(hub.repo, prepared.target_branch, prepared.commit):
        return Landed(commit=prepared.commit, note=await _aftermath(place))
    return Refused(
        reason=f"the checkout {place.path} cannot be brought forward: {complaint(done) or f'git exited {done.exit_code}'}",
        hint=f"see what is in the way: git -C {place.path} status --ignored; then merge again",
    )


def _merging(place: Checkout, ref: str) -> Git:
    """Without the options that the user has configured for merges of this branch; `-s ours` among them would drop the whole change."""
    return place.git.with_settings({f"branch.{ref.removeprefix('refs/heads/')}.mergeoptions": ""})


async def _aftermath(place: Checkout) -> str:
    try:
        dirt = await dirt_of(place)
    except WorkspaceError as error:
        return f"git cannot tell whether {place.path} is clean now: {error}"
    return f"git shows changes in {place.path} now ({some([entry.path for entry in dirt])})" if dirt else ""


async def _swap(hub: Hub, prepared: Prepared, ref: str) -> Landed | Refused:
    done = await user_git(hub.repo).attempt(
        "update-ref", "--no-deref", "-m", "stationmaster: merge", ref, prepared.commit, prepared.target_commit
    )
    if done.exit_code == 0:
        return Landed(commit=prepared.commit)
    return Refused(
        reason=f"{prepared.target_branch} could not be moved: {complaint(done)}",
        hint="it may just have moved: review it again, then merge",
    )


async def has_landed(repo: Path, branch: str, commit: str) -> bool:
    """Whether the branch's history holds `commit`. False also when repository, branch or commit is unknown there."""
    try:
        done = await user_git(repo).attempt("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}")
    except GitFailed:
        return False
    return done.exit_code == 0


async def settle_landing(repo: Path, *, hubs: Path, branch: str, commit: str, patience_s: float = PATIENCE_S) -> bool | None:
    """Whether `commit` has landed, asked once no git that an earlier station started is at work on it. None when one still is."""
    try:
        async with _turn(hub_path(repo, hubs=hubs), patience_s):
            return await has_landed(repo, branch, commit)
    except LockHeld:
        return None
