"""A lock on a file, between tasks of this process as well as between processes. The kernel lets go of it when its holder dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from workspaces.errors import WorkspaceError

LOCK_TIMEOUT_S = 600.0
POLL_S = 0.01


class LockHeld(WorkspaceError):
    """Somebody else has the lock, and keeps it."""


@asynccontextmanager
async def file_lock(path: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> AsyncGenerator[int]:
    """Hold `path` (made when missing, folders included). Raises LockHeld when it is not to be had in time.

    Gives the descriptor: a child that inherits it keeps the lock when this process dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _acquire(handle, path, time.monotonic() + timeout_s)
        yield handle
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # also for those who have inherited it and stay
        os.close(handle)


async def _acquire(handle: int, path: Path, deadline: float) -> None:
    """Polls: a thread that waits inside the kernel could not be cancelled."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LockHeld(f"{path} is held by another process", hint=f"see who: fuser -v {path}") from None
            await asyncio.sleep(POLL_S)
        else:
            return
