"""What can go wrong with a repository, a workspace or a sandbox.

    WorkspaceError
    ├── RepositoryUnusable    the user's repository cannot serve as it stands (missing, no commit, not ours to read)
    ├── GitFailed             a git command ended with an error that nobody expected
    ├── PathRefused           a path leads out of the workspace
    └── SandboxUnavailable    the sandbox cannot run commands

None of these is a command's own failure: a command that exits with 1 is a result, not an error.
"""

from __future__ import annotations

from collections.abc import Sequence


class WorkspaceError(Exception):
    """The message says what happened; `hint` says what a person can do about it ('' when nothing)."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RepositoryUnusable(WorkspaceError):
    """The user's repository cannot serve as it stands."""


class GitFailed(WorkspaceError):
    """A git command failed. `stderr` is decoded, control characters kept out, at most 2,000 characters.

    `ended` says how in words; '' stands for the exit code's, and None as that for a time limit.
    """

    def __init__(self, argv: Sequence[str], exit_code: int | None, stderr: str, *, ended: str = "", hint: str = "") -> None:
        how = ended or ("timed out" if exit_code is None else f"exited {exit_code}")
        super().__init__(f"`{' '.join(argv)}` {how}: {stderr.strip() or 'no message'}", hint=hint)
        self.argv = tuple(argv)
        self.exit_code = exit_code
        self.stderr = stderr


class PathRefused(WorkspaceError):
    """A path leads out of the workspace. The text is fit to be shown to the model."""


class SandboxUnavailable(WorkspaceError):
    """The sandbox is down. Never show this to the model as command output."""
