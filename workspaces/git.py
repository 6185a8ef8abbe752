"""The one way in which git is run, and the only module that imports GitPython.

Covers: configuration of the user, the system and the environment; hooks, fsmonitor, pagers, editors, prompts, every transport but
local files; pathspec magic; other languages; a git that hangs or floods.
Does not cover: the configuration in the git directory itself. Give only directories whose owner is trusted (the hub, or the user's
own repository); a workspace's `.git` never is.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from workspaces.errors import GitFailed
from workspaces.process import Completed, run_process, run_to_end

GIT_TIMEOUT_S = 300.0
OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024
STDERR_LIMIT = 2_000
NAMES = 3
"""How many files of a list a message names."""
MISSING = r"unable to read|missing (blob|tree|commit)|bad object|could not parse object|promisor|not our ref"
MISSING_HINT = "objects are missing: see `git fsck`; a partial clone gets them by `git fetch --refetch --no-filter`"
NEEDED = (2, 38)
"""`merge-tree --write-tree` came with 2.38."""

SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "commit.gpgSign": "false",
    "core.quotePath": "false",
    "color.ui": "never",
    "advice.detachedHead": "false",
}
"""What holds for every call, whatever any file says."""
OWN_SETTINGS: Mapping[str, str] = {
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.safecrlf": "false",
    "protocol.version": "2",
}
"""What holds besides where the user's configuration does not: git reads ~/.config/git/ignore even without a configuration."""
DIFF_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "-M", "--src-prefix=a/", "--dst-prefix=b/")
"""The same for lists, counts and reviews, so that they agree."""
KEPT_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """A hardened git for one repository.

    `git_dir` None lets git discover the repository from `cwd`. `user_config` obeys the user's global configuration (ownership
    exceptions, identity, LFS filters), hooks and fsmonitor excepted: only for the user's own repository.
    """

    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    cwd: Path | None = None
    user_config: bool = False
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Configuration that holds over all files."""

    async def run(self, *args: str, stdin: bytes = b"", timeout_s: float = GIT_TIMEOUT_S) -> bytes:
        """Git's stdout. Raises GitFailed when it exits with anything but 0, runs out of time, or writes more than can be kept."""
        done = await self.attempt(*args, stdin=stdin, timeout_s=timeout_s)
        if done.exit_code != 0:
            raise failure(args, done)
        return done.stdout

    async def attempt(self, *args: str, stdin: bytes = b"", timeout_s: float = GIT_TIMEOUT_S) -> Completed:
        """How git ended, whatever the exit code. Raises GitFailed only when it did not run to its end or wrote too much."""
        try:
            done = await run_process(
                ["git", *args], cwd=self._where, env=self.environment(), timeout_s=timeout_s, limit_bytes=OUTPUT_LIMIT_BYTES, stdin=stdin
            )
        except OSError as error:
            raise _not_started(args, self._where, error) from error
        if done.timed_out:
            raise failure(args, done)
        if done.dropped_bytes:
            raise GitFailed(("git", *args), done.exit_code, f"wrote more than {OUTPUT_LIMIT_BYTES} bytes")
        return done

    async def see_through(self, *args: str, pass_fds: Sequence[int] = ()) -> Completed:
        """Like `attempt`, for what must not be left half done: nothing ends it, neither time nor cancellation nor our own death."""
        try:
            return await run_to_end(["git", *args], cwd=self._where, env=self.environment(), pass_fds=pass_fds)
        except OSError as error:
            raise _not_started(args, self._where, error) from error

    def with_index(self, index: Path) -> Git:
        """The same with an index file of its own, which is one file."""
        return replace(self, index=index, settings={**self.settings, "core.splitIndex": "false"})

    def with_settings(self, settings: Mapping[str, str]) -> Git:
        return replace(self, settings={**self.settings, **settings})

    @property
    def _where(self) -> Path:
        return self.cwd or self.work_tree or self.git_dir or Path("/")

    def environment(self) -> dict[str, str]:
        """Everything git gets to see of our environment, and what replaces the rest."""
        env = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        env |= {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_EDITOR": "true",
            "GIT_PAGER": "cat",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "file",
            "GIT_DEFAULT_REF_FORMAT": "files",
            "GIT_DEFAULT_HASH": "sha1",
            "GIT_PROGRESS_DELAY": "100000",
        }
        settings = {**SETTINGS, **self.settings}
        if not self.user_config:
            env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1"}
            settings |= OWN_SETTINGS
        for number, (key, value) in enumerate(settings.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        env["GIT_CONFIG_COUNT"] = f"{len(settings)}"
        for name, path in (("GIT_DIR", self.git_dir), ("GIT_WORK_TREE", self.work_tree), ("GIT_INDEX_FILE", self.index)):
            if path is not None:
                env[name] = f"{path}"
        return env | dict(self.env)


def _not_started(args: Sequence[str], where: Path, error: OSError) -> GitFailed:
    gone = not where.is_dir()
    hint = f"was it moved or removed? {where} must be where it was when the work was added" if gone else "is git installed, and on PATH?"
    return GitFailed(("git", *args), None, f"{error.strerror} ({where if gone else 'git'})", ended="cannot be started", hint=hint)


def failure(args: tuple[str, ...], done: Completed) -> GitFailed:
    """What a git that ended badly has to say for itself."""
    said = complaint(done)
    hint = MISSING_HINT if re.search(MISSING, said) else ""
    return GitFailed(("git", *args), done.exit_code, said, hint=hint)


def complaint(done: Completed) -> str:
    """Git's stderr, decoded, without control characters, at most 2,000 characters. Of lists of files the first few."""
    lines: list[str] = []
    for listed, run in itertools.groupby(done.stderr.decode("utf-8", "backslashreplace").splitlines(), lambda line: line.startswith("\t")):
        entries = [*run]
        lines += [*entries[:NAMES], f"\tand {len(entries) - NAMES} more"] if listed and len(entries) > NAMES else entries
    return re.sub(r"[^\n\t -~\u00a0-\U0010ffff]", "?", "\n".join(lines)).strip()[:STDERR_LIMIT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    id: str
    tree: str
    parents: tuple[str, ...]
    message: str


async def read_commit(git_dir: Path, commit: str) -> Commit:
    """A commit of the hub. Raises GitFailed when it is not there."""
    return await asyncio.to_thread(_read_commit, git_dir, commit)


def _read_commit(git_dir: Path, commit: str) -> Commit:
    # Takes 0.2 s to import, and looks for a git when it is: that is no reason to fail here.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    from git import Repo
    from git.exc import GitError

    environment = Git(git_dir=git_dir).environment() | {"GIT_COMMON_DIR": f"{git_dir}", "GIT_OBJECT_DIRECTORY": f"{git_dir / 'objects'}"}
    try:
        # Leaving the block ends the `git cat-file` that it keeps.
        with Repo(git_dir) as repo:
            repo.git.update_environment(**environment)
            found = repo.commit(commit)
            text = found.message if isinstance(found.message, str) else found.message.decode("utf-8", "replace")
            return Commit(id=found.hexsha, tree=found.tree.hexsha, parents=tuple(parent.hexsha for parent in found.parents), message=text)
    except (GitError, ValueError, OSError) as error:
        argv = ("git", "cat-file", "commit", commit)
        raise GitFailed(argv, None, f"{git_dir} does not hold it ({type(error).__name__})", ended="failed") from error


async def git_problem() -> str | None:
    """None when git is there and new enough (2.38); else one line with the remedy."""
    remedy = "install git 2.38 or newer (Debian, Ubuntu: apt install git; macOS: brew install git)"
    try:
        said = (await Git().run("version", timeout_s=10)).decode(errors="replace")
    except GitFailed as error:
        return f"git does not run ({error.stderr}): {remedy}"
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < NEEDED:
        return f"{said.strip()} is too old: {remedy}"
    return None
