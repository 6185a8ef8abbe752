"""Running a program and coming back: bounded output, bounded time, nothing left behind.

Covers: a child that keeps the pipe open, background children, ignored SIGTERM, endless output, a deadline, cancellation.
Does not cover: a child that made a session of its own (`setsid`). A PID namespace or the sweep of `workspaces.local` ends those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a program ended and what it wrote.

    `exit_code` is None when its time ran out (`timed_out`), negative when a signal ended it. Of each stream the head and the
    tail are kept, glued together; `dropped_bytes` counts what was left out between them, of both streams together.
    `stderr` is empty when it was merged into `stdout`.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool
    dropped_bytes: int


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    limit_bytes: int,
    merge_output: bool = False,
    stdin: bytes = b"",
) -> Completed:
    """Run `argv` in a session of its own, with exactly `env`, stdin holding `stdin` and then at its end.

    Returns within 2 s of the end of `argv`'s own process, also while a background child holds its pipes; its process group is
    dead by then (SIGTERM, then SIGKILL). `limit_bytes` bounds what is kept of each stream. Cancellation kills the group too.
    Raises OSError when the program cannot be started (`FileNotFoundError` also when `cwd` is missing).
    """
    raise NotImplementedError
