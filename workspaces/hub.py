"""The hub: the station's own bare clone of a repository, which holds bases and snapshots.

The user's repository is only read here. Objects are hard links, so a hub costs next to nothing, and the user's `gc` cannot take
them away.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from workspaces.errors import GitFailed, RepositoryUnusable
from workspaces.git import Git, complaint
from workspaces.lock import file_lock
from workspaces.process import Completed

BASES = "refs/stationmaster/bases"
LOOSE_SAMPLE = 4
"""About 1,000 loose objects in all."""
ATTRIBUTES = "* !filter !working-tree-encoding\n"
"""Rules over every .gitattributes: no filter program, and no encoding that a file's bytes could fail. Line ends are still converted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Where work starts. `branch` is the local branch a merge would land on, None when HEAD is detached and no branch was named.

    `repo` is the absolute top folder of the checkout (of the linked worktree, if it is one), or the bare repository itself; where the
    files lie elsewhere (`core.worktree`), the folder from which git finds both.
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

    @property
    def git(self) -> Git:
        return Git(git_dir=self.path)


def user_git(repo: Path) -> Git:
    """Git in the user's repository, with the user's configuration, for reading."""
    return Git(cwd=repo, user_config=True)


def common_dir(repo: Path) -> Path:
    """The git directory that all worktrees of a repository share. Starts no process; a folder that is no repository is its own."""
    top = repo.resolve()
    link = top / ".git"
    if link.is_file():
        target = link.read_text(errors="surrogateescape").removeprefix("gitdir:").strip()
        private = (top / target).resolve()
    else:
        private = link.resolve() if link.is_dir() else top
    shared = private / "commondir"
    return (private / shared.read_text(errors="surrogateescape").strip()).resolve() if shared.is_file() else private


def hub_path(repo: Path, *, hubs: Path) -> Path:
    """Where the hub of `repo` lies, made or not; linked worktrees of one repository share it. Starts no process."""
    common = common_dir(repo)
    label = common.parent.name if common.name == ".git" else common.name.removesuffix(".git")
    key = hashlib.sha256(os.fsencode(common)).hexdigest()[:12]
    return hubs.resolve() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', label)[:40]}-{key}.git"


async def resolve_base(repo: Path, base: str | None) -> Base:
    """What `base` (a branch, tag, commit; None: HEAD) means in the repository around `repo` at this moment.

    Reads only. Raises RepositoryUnusable, with a hint, when there is no repository, no commit, no such ref, or git distrusts the owner.
    """
    top = await _top(_folder(repo))
    branch = await _branch(top, base)
    wanted = base or "HEAD"
    done = await user_git(top).attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}")
    if done.exit_code != 0:
        raise await _no_commit(top, base)
    commit = done.stdout.decode().strip()
    await _refuse_gaps(top, commit)
    return Base(commit=commit, branch=branch, repo=top)


async def _refuse_gaps(top: Path, commit: str) -> None:
    """A partial clone may lack the very files of the commit, and nothing fetches them later: no network is asked here."""
    git = user_git(top)
    if (await git.attempt("config", "--get-regexp", r"^remote\..*\.promisor$")).exit_code != 0:
        return
    listed = await git.attempt("rev-list", "--objects", "--quiet", "--missing=print", "--max-count=1", commit)
    missing = listed.stdout.count(b"?")
    if missing:
        files = "1 file" if missing == 1 else f"{missing:,} files"
        raise RepositoryUnusable(
            f"{top} is a partial clone that lacks {files} of {commit[:12]}",
            hint=f"fetch what is missing: git -C {top} fetch --refetch --no-filter",
        )


def _folder(repo: Path) -> Path:
    if not repo.is_dir():
        raise RepositoryUnusable(f"{repo} is not a folder", hint="name the folder of a git repository with --repo")
    return repo


async def _top(repo: Path) -> Path:
    git = user_git(repo)
    done = await git.attempt("rev-parse", "--is-bare-repository", "--show-object-format", "--absolute-git-dir")
    if done.exit_code != 0:
        raise _unusable(repo, done)
    bare, object_format, git_dir = os.fsdecode(done.stdout).split("\n", 2)
    if object_format != "sha1":
        raise RepositoryUnusable(
            f"{repo} names its objects by {object_format}", hint="only repositories in git's usual format (sha1) are supported"
        )
    if bare == "true":
        return Path(git_dir.removesuffix("\n"))
    done = await git.attempt("rev-parse", "--show-toplevel")
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{repo} lies inside a git directory", hint="name the folder of the checkout with --repo")
    top = Path(os.fsdecode(done.stdout).removesuffix("\n"))
    if (top / ".git").exists():
        return top
    # core.worktree puts the files elsewhere; from there git would not find its way back.
    found = Path(git_dir.removesuffix("\n"))
    return found.parent if found.name == ".git" else found


def _unusable(repo: Path, done: Completed) -> RepositoryUnusable:
    """Why git finds no repository here. Told by what lies there, not by git's words."""
    here = repo.resolve()
    around = next((folder for folder in (here, *here.parents) if _looks_like_one(folder)), None)
    if around is None:
        # An empty first commit would leave the files that are there out of all work.
        first = (
            f"git -C {repo} add -A && git -C {repo} commit -m start"
            if any(here.iterdir())
            else f"git -C {repo} commit --allow-empty -m start"
        )
        return RepositoryUnusable(f"{repo} is not a git repository", hint=f"make it one: git -C {repo} init && {first}")
    owners = {path.stat().st_uid for path in (around, around / ".git", common_dir(around)) if path.exists()}
    if owners - {os.geteuid()}:
        return RepositoryUnusable(
            f"git does not trust {around}: it belongs to another user", hint=f"if you do: git config --global --add safe.directory {around}"
        )
    return RepositoryUnusable(f"git cannot use {around}: {complaint(done)}", hint=f"see: git -C {around} status")


def _looks_like_one(folder: Path) -> bool:
    return (folder / ".git").exists() or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())


async def _branch(top: Path, base: str | None) -> str | None:
    git = user_git(top)
    if base is not None and not base.startswith("-"):
        name = base.removeprefix("refs/heads/")
        named = await git.attempt("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
        if named.exit_code == 0:
            return name
    head = await git.attempt("symbolic-ref", "--quiet", "HEAD")
    name = head.stdout.decode(errors="surrogateescape").strip()
    return name.removeprefix("refs/heads/") if head.exit_code == 0 and name.startswith("refs/heads/") else None


async def _no_commit(top: Path, base: str | None) -> RepositoryUnusable:
    any_commit = await user_git(top).attempt("rev-list", "--all", "--max-count=1")
    if base is None or not any_commit.stdout.strip():
        if any_commit.stdout.strip():
            return RepositoryUnusable(f"{top}: the present branch has no commit yet", hint="name another one with --base, or commit first")
        return RepositoryUnusable(
            f"{top} has no commit yet", hint=f'make the first one: git -C {top} add -A && git -C {top} commit -m "first"'
        )
    return RepositoryUnusable(f"{top} knows no branch, tag or commit {base!r}", hint=f"see what there is: git -C {top} branch -a")


async def open_hub(repo: Path, *, hubs: Path, commit: str) -> Hub:
    """The hub of `repo` below the folder `hubs`, made when missing, with `commit` in it and kept by a ref.

    Any number of callers, in this and other processes, may ask at once. Raises RepositoryUnusable, GitFailed or WorkspaceError.
    """
    hub = Hub(path=hub_path(repo, hubs=hubs), repo=repo)
    if keeps(hub, commit):
        return hub
    async with _lock(hub):
        if not hub.path.is_dir():
            await _clone(hub)
        await _bring(hub, commit)
    return hub


def _lock(hub: Hub) -> AbstractAsyncContextManager[int]:
    return file_lock(hub.path.with_suffix(".lock"))


def keeps(hub: Hub, commit: str) -> bool:
    """Whether the hub has a ref that keeps `commit`. Starts no process: refs are files, and nobody packs these."""
    return (hub.path / BASES / commit).is_file()


async def keep(hub: Hub, commit: str) -> None:
    """See to it that the hub holds `commit` of the user's repository, for good. Raises RepositoryUnusable when that has no such commit."""
    if keeps(hub, commit):
        return
    async with _lock(hub):
        await _bring(hub, commit)


async def _bring(hub: Hub, commit: str) -> None:
    if keeps(hub, commit):
        return
    ref = f"{BASES}/{commit}"
    if (await hub.git.attempt("cat-file", "-e", f"{commit}^{{commit}}")).exit_code == 0:
        await hub.git.run("update-ref", ref, commit)
        return
    source = _source(hub)
    # The user's own configuration: git may need to be told whose repository it may trust.
    fetching = Git(git_dir=hub.path, user_config=True)
    done = await fetching.attempt(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow", f"{source}", f"{commit}:{ref}"
    )
    if done.exit_code != 0:
        raise RepositoryUnusable(f"{hub.repo} does not give commit {commit}: {complaint(done)}", hint=f"see: git -C {hub.repo} fsck")


def _source(hub: Hub) -> Path:
    source = common_dir(hub.repo)
    if not source.is_dir():
        raise RepositoryUnusable(f"{hub.repo} is gone", hint="the tasks' repository must stay where it was when they were added")
    return source


async def _clone(hub: Hub) -> None:
    """Beside its place first, then renamed: a hub that exists is complete."""
    source = _source(hub)
    partial = hub.path.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        cloning = Git(cwd=hub.path.parent, user_config=True)
        done = await cloning.attempt("clone", "--quiet", "--bare", "--no-tags", "--template=", f"{source}", f"{partial}")
        if done.exit_code != 0:
            raise RepositoryUnusable(f"cannot clone {hub.repo}: {complaint(done)}", hint=f"see: git -C {hub.repo} fsck")
        await _stand_alone(partial)
        await _pack(partial)
        (partial / "info").mkdir(exist_ok=True)
        (partial / "info" / "attributes").write_text(ATTRIBUTES)
        partial.rename(hub.path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


async def _pack(hub: Path) -> None:
    """Many loose objects into one pack: reading 10,000 of them doubles the time of a checkout, and nothing tidies a hub up later.

    Packs stay the hard links that they are. Only speed is at stake, so a failure is left for whoever needs the missing object.
    """
    sample = hub / "objects" / "17"  # one in 256, as git's own `gc --auto` estimates
    if sample.is_dir() and sum(1 for _ in sample.iterdir()) > LOOSE_SAMPLE:
        await Git(git_dir=hub).attempt("repack", "-d", "-q", "--window=0")


async def _stand_alone(hub: Path) -> None:
    """Objects that the user's repository borrows itself are copied: sandboxes show the hub's folder and no other."""
    borrowed = hub / "objects" / "info" / "alternates"
    if not borrowed.exists():
        return
    try:
        await Git(git_dir=hub).run("repack", "-a", "-d", "-q")
    except GitFailed as error:
        raise RepositoryUnusable(f"the repository borrows objects that are missing: {error.stderr}", hint="see: git fsck") from error
    borrowed.unlink()
