"""Running a program and coming back: bounded output, bounded time, nothing left behind.

Covers: a child that keeps the pipe open, background children, ignored SIGTERM, endless output, a deadline, cancellation.
Does not cover: a child that made a session of its own (`setsid`). A PID namespace or the sweep of `workspaces.local` ends those.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TERM_GRACE_S = 0.5
"""How long a process group may take over SIGTERM."""
REAP_GRACE_S = 10.0
"""How long the kernel may take over SIGKILL: a loaded machine needs its time, and a disk that hangs must not hold us for good."""
KILL_GRACE_S = 0.5
"""How long the pipes may take over their last bytes after that."""
SILENT_GRACE_S = 0.05
"""How much of it remains once the group's pipes are closed."""
POLL_S = 0.01
FILE_LIMIT_BYTES = 1024 * 1024
CHUNK_BYTES = 256 * 1024


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


class _Reader:
    """Takes the bytes of a pipe as they come, until nobody can write to it any more."""

    def __init__(self, pipe: IO[bytes], limit_bytes: int) -> None:
        self.kept = HeadTail(limit_bytes)
        self.ended = asyncio.Event()
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._take)

    def _take(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self.kept.add(data)
        else:
            self.close()

    def close(self) -> None:
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            self.ended.set()


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
    process = _start(argv, cwd=cwd, env=env, merge_output=merge_output, stdin=stdin, pass_fds=pass_fds)
    readers = [_Reader(pipe, limit_bytes) for pipe in (process.stdout, process.stderr) if pipe is not None]
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await _exit_of(process)
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process, readers)
    return Completed(
        exit_code=None if timed_out else process.returncode,
        stdout=readers[0].kept.bytes(),
        stderr=b"" if merge_output else readers[1].kept.bytes(),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        dropped_bytes=sum(reader.kept.dropped_bytes for reader in readers),
    )


async def run_to_end(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> Completed:
    """Run `argv` until it ends by itself: for what must not be left half done.

    No time limit; a cancellation waits for the end and is raised then. Should this process be killed, `argv` goes on: it has a session
    of its own, and its output goes to files, where no reader can be missed. Of each stream the first `FILE_LIMIT_BYTES` are given.
    Raises OSError when it cannot be started.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = _start_alone(argv, cwd=cwd, env=env, out=out, err=err, pass_fds=pass_fds)
        await _end_of(process)
        written = [os.pread(file.fileno(), FILE_LIMIT_BYTES, 0) for file in (out, err)]
        return Completed(
            exit_code=process.returncode,
            stdout=written[0],
            stderr=written[1],
            seconds=time.monotonic() - started,
            timed_out=False,
            dropped_bytes=sum(os.fstat(file.fileno()).st_size for file in (out, err)) - sum(map(len, written)),
        )


def _start_alone(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], out: IO[bytes], err: IO[bytes], pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True, pass_fds=pass_fds
    )


async def _end_of(process: subprocess.Popen[bytes]) -> None:
    """Wait for it and reap it, whoever cancels; the cancellation is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while process.returncode is None:
        try:
            await _exit_of(process)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _start(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], merge_output: bool, stdin: bytes, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Not by asyncio's own way: cancelled halfway, that kills the first process alone and then waits for the others."""
    with ExitStack() as stack:
        # A file, not a pipe: nobody has to feed it, and a child that never reads cannot block us.
        source = stack.enter_context(tempfile.TemporaryFile()) if stdin else None
        if source is not None:
            source.write(stdin)
            source.seek(0)
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if source is None else source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_output else subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=pass_fds,
        )


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process and reap it."""
    if sys.platform == "linux":
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        handle = os.pidfd_open(process.pid) if process.returncode is None else -1
        if handle >= 0:
            loop.add_reader(handle, exited.set)
            try:
                await exited.wait()
            finally:
                loop.remove_reader(handle)
                os.close(handle)
    while process.poll() is None:  # noqa: ASYNC110  elsewhere the kernel has no such handle
        await asyncio.sleep(POLL_S)


async def _end(process: subprocess.Popen[bytes], readers: Sequence[_Reader]) -> None:
    """The group dead, the process reaped, the pipes empty or given up. A second cancellation skips the patience, not the kill."""
    try:
        if _signal(process.pid, signal.SIGTERM):
            await _gone(process.pid, readers)
    finally:
        _signal(process.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(REAP_GRACE_S):
                await _exit_of(process)
            async with asyncio.timeout(KILL_GRACE_S):
                for reader in readers:
                    await reader.ended.wait()
        except TimeoutError:
            pass  # a child in a session of its own holds the pipe: its output is not waited for
        finally:
            for reader in readers:
                reader.close()


def _signal(group: int, number: int) -> bool:
    """Whether the process group still has a member to get the signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return False
    return True


async def _gone(group: int, readers: Sequence[_Reader]) -> None:
    """Wait until the group has no member left, but not for long once nobody holds the pipes.

    Members that are not our children become zombies of whoever adopted them, and a container's first process may never reap:
    their group then outlives them.
    """
    started = time.monotonic()
    silent: float | None = None
    while _signal(group, 0):
        now = time.monotonic()
        if silent is None and all(reader.ended.is_set() for reader in readers):
            silent = now
        if now - started > TERM_GRACE_S or (silent is not None and now - silent > SILENT_GRACE_S):
            return
        await asyncio.sleep(POLL_S)
