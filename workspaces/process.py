"""Running a program and coming back: bounded output, bounded time, nothing left behind.

Covers: a child that keeps the pipe open, background children, ignored SIGTERM, endless output, a deadline, cancellation.
Does not cover: a child that made a session of its own (`setsid`). A PID namespace or the sweep of `workspaces.local` ends those.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

TERM_GRACE_S = 0.5
"""How long a process group may take over SIGTERM."""
KILL_GRACE_S = 0.5
"""How long the kernel may take over SIGKILL, and the pipes over their last bytes: something else may hold them open."""
SILENT_GRACE_S = 0.05
"""How much of it remains once the group's pipes are closed."""
POLL_S = 0.01


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


class HeadTail:
    """The first and the last bytes of a stream, `limit_bytes` in all, half of them each."""

    def __init__(self, limit_bytes: int) -> None:
        self._head = bytearray()
        self._head_room = limit_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_room = limit_bytes - self._head_room
        self._tail_bytes = 0
        self.dropped_bytes = 0

    def add(self, data: bytes) -> None:
        room = self._head_room - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._tail_bytes += len(rest)
        while self._tail_bytes > self._tail_room:
            self._shed(self._tail_bytes - self._tail_room)

    def _shed(self, excess: int) -> None:
        oldest = self._tail.popleft()
        if len(oldest) > excess:
            self._tail.appendleft(oldest[excess:])
        gone = min(excess, len(oldest))
        self._tail_bytes -= gone
        self.dropped_bytes += gone

    def bytes(self) -> bytes:
        return bytes(self._head) + b"".join(self._tail)


class _Listener(asyncio.SubprocessProtocol):
    """Collects output as it comes, and tells the end of the process apart from the end of its pipes."""

    def __init__(self, limit_bytes: int, pipes: int) -> None:
        self.stdout = HeadTail(limit_bytes)
        self.stderr = HeadTail(limit_bytes)
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self._open_pipes = pipes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open_pipes -= 1
        if self._open_pipes == 0:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    limit_bytes: int,
    merge_output: bool = False,
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run `argv` in a session of its own, with exactly `env`, stdin holding `stdin` and then at its end.

    Returns within 2 s of the end of `argv`'s own process, also while a background child holds its pipes; its process group is
    dead by then (SIGTERM, then SIGKILL). `limit_bytes` bounds what is kept of each stream. Cancellation kills the group too.
    Raises OSError when the program cannot be started (`FileNotFoundError` also when `cwd` is missing).
    """
    started = time.monotonic()
    listener = _Listener(limit_bytes, 1 if merge_output else 2)
    with ExitStack() as stack:
        # A file, not a pipe: nobody has to feed it, and a child that never reads cannot block us.
        source = stack.enter_context(tempfile.TemporaryFile()) if stdin else None
        if source is not None:
            source.write(stdin)
            source.seek(0)
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: listener,
            *argv,
            stdin=source if source is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_output else subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await listener.exited.wait()
    except TimeoutError:
        timed_out = True
    finally:
        await _end(transport, listener)
    return Completed(
        exit_code=None if timed_out else transport.get_returncode(),
        stdout=listener.stdout.bytes(),
        stderr=listener.stderr.bytes(),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        dropped_bytes=listener.stdout.dropped_bytes + listener.stderr.dropped_bytes,
    )


async def _end(transport: asyncio.SubprocessTransport, listener: _Listener) -> None:
    """The group dead, the process reaped, the pipes empty or given up. A second cancellation skips the patience, not the kill."""
    group = transport.get_pid()
    try:
        if _signal(group, signal.SIGTERM):
            await _gone(group, listener.drained)
    finally:
        _signal(group, signal.SIGKILL)
        try:
            await _within(listener.exited, KILL_GRACE_S)
            await _within(listener.drained, KILL_GRACE_S)
        finally:
            transport.close()


def _signal(group: int, number: int) -> bool:
    """Whether the process group still has a member to get the signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return False
    return True


async def _gone(group: int, drained: asyncio.Event) -> None:
    """Wait until the group has no member left, but not for long once nobody holds the pipes.

    Members that are not our children become zombies of whoever adopted them, and a container's first process may never reap:
    their group then outlives them.
    """
    started = time.monotonic()
    silent: float | None = None
    while _signal(group, 0):
        now = time.monotonic()
        if silent is None and drained.is_set():
            silent = now
        if now - started > TERM_GRACE_S or (silent is not None and now - silent > SILENT_GRACE_S):
            return
        await asyncio.sleep(POLL_S)


async def _within(event: asyncio.Event, patience_s: float) -> None:
    try:
        async with asyncio.timeout(patience_s):
            await event.wait()
    except TimeoutError:
        pass
