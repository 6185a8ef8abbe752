"""The station's SQLite file, and the only module that uses sqlite3.

One process writes (the station's lock sees to that), through one thread that owns the one writing connection; a second
thread reads. Write-ahead logging lets both go on at once, and lets other processes read while the station works.

What a crash costs: with WAL and synchronous=NORMAL a commit goes to the operating system without waiting for the disk.
A killed process (kill -9 too) loses nothing that was committed. A power failure or a crash of the kernel may lose the
last commits, in order, since the last checkpoint; the file stays consistent. Then work is done again; none is half done.

    StoreFailed
    ├── StoreFull       the disk is full: nothing of the transaction was kept; it may be tried again once there is room
    └── StoreDamaged    the file is no database or is damaged: nobody must write on
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, Self, TypeAlias, TypeVar

from orchestrator import migrations
from orchestrator.errors import UserError

Database: TypeAlias = sqlite3.Connection
Row: TypeAlias = sqlite3.Row
T = TypeVar("T")

BUSY_TIMEOUT_MS = 10_000


class StoreFailed(Exception):
    """The store could not do its work. Nothing of the transaction was kept."""


class StoreFull(StoreFailed):
    """No room on the disk. The station pauses new work and says so; the same write may be tried again later."""


class StoreDamaged(StoreFailed):
    """The file is not a database, or a damaged one. Only a person can help."""


class Store:
    """Transactions on one file, from any coroutine of one event loop.

    A caller that is cancelled cuts no transaction in two: it is applied whole or not at all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Opens the file, creating it (mode 0600) and bringing its schema up to date.

        UserError when a newer version of Stationmaster has written it; StoreFailed when it cannot be opened.
        """
        raise NotImplementedError

    async def write(self, work: Callable[[Database], T], *, committed: Callable[[T], None] | None = None) -> T:
        """What `work` returns, run in one BEGIN IMMEDIATE transaction in the writer's thread.

        An exception out of `work` rolls everything back and comes out here. `committed` is called with the result on
        the event loop after the commit, in the order of the commits, even when the caller was cancelled meanwhile.
        """
        raise NotImplementedError

    async def read(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, run on one consistent state of the file, which holds every write that was awaited before."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Ends both threads after the work that was handed to them."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@contextlib.contextmanager
def open_readonly(path: Path) -> Generator[Database, None, None]:
    """A connection that cannot write, for a home whose station is down (or up: it disturbs nobody).

    What a killed station had committed is seen, also when its write-ahead log was never folded in. All reads inside
    the `with` see the same state. UserError when there is no file or its schema is not ours; StoreFailed otherwise.
    """
    raise NotImplementedError
    yield
