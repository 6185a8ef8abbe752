"""The one way in which git is run, and the only module that imports GitPython.

Covers: configuration of the user, the system and the environment; hooks, fsmonitor, pagers, editors, prompts, helpers for
transports; pathspec magic; other languages; a git that hangs or floods.
Does not cover: the configuration in the git directory itself. Give only directories whose owner is trusted (the hub, or the user's
own repository); a workspace's `.git` never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workspaces.process import Completed

GIT_TIMEOUT_S = 300.0
OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024


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
    env: Mapping[str, str] | None = None

    async def run(self, *args: str, stdin: bytes = b"", timeout_s: float = GIT_TIMEOUT_S) -> bytes:
        """Git's stdout. Raises GitFailed when it exits with anything but 0, runs out of time, or writes more than can be kept."""
        raise NotImplementedError

    async def attempt(self, *args: str, stdin: bytes = b"", timeout_s: float = GIT_TIMEOUT_S) -> Completed:
        """How git ended, whatever the exit code. Raises GitFailed only when it ran out of time or could not be started."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    id: str
    tree: str
    parents: tuple[str, ...]
    message: str


async def read_commit(git_dir: Path, commit: str) -> Commit:
    """A commit of the hub, read without starting a process. Raises GitFailed when it is not there."""
    raise NotImplementedError


async def git_problem() -> str | None:
    """None when git is there and new enough (2.38); else one line with the remedy."""
    raise NotImplementedError
