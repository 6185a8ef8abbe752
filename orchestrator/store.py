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
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeAlias, TypeVar
from urllib.parse import quote

from orchestrator import migrations
from orchestrator.errors import UserError

Database: TypeAlias = sqlite3.Connection
Row: TypeAlias = sqlite3.Row
T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
WAL_LIMIT_BYTES = 64 * 1024 * 1024
NO_ROOM_BYTES = 1024 * 1024


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
        """Use `Store.open`."""
        self.path = path
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._write_db: Database | None = None
        self._read_db: Database | None = None

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Opens the file, creating it (mode 0600) and bringing its schema up to date.

        UserError when a newer version of Stationmaster, or another program, has written it; StoreFailed when it cannot be opened.
        """
        store = cls(path)
        loop = asyncio.get_running_loop()
        try:
            store._write_db = await loop.run_in_executor(store._writer, _open_writer, path)
            store._read_db = await loop.run_in_executor(store._reader, _open_reader, path)
        except BaseException:
            await store.aclose()
            raise
        return store

    async def write(self, work: Callable[[Database], T], *, committed: Callable[[T], None] | None = None) -> T:
        """What `work` returns, run in one BEGIN IMMEDIATE transaction in the writer's thread.

        An exception out of `work` rolls everything back and comes out here. `committed` is called with the result on
        the event loop after the commit, in the order of the commits, even when the caller was cancelled meanwhile.
        """
        loop = asyncio.get_running_loop()

        def transaction() -> T:
            db = _opened(self._write_db)
            result = _in_transaction(db, "BEGIN IMMEDIATE", work, self.path)
            if committed is not None:
                with contextlib.suppress(RuntimeError):  # the loop has closed: nobody is left to tell
                    loop.call_soon_threadsafe(committed, result)
            return result

        return await loop.run_in_executor(self._writer, transaction)

    async def read(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, run on one consistent state of the file, which holds every write that was awaited before."""

        def transaction() -> T:
            return _in_transaction(_opened(self._read_db), "BEGIN", work, self.path)

        return await asyncio.get_running_loop().run_in_executor(self._reader, transaction)

    async def aclose(self) -> None:
        """Ends both threads after the work that was handed to them. The last connection to close folds the log into the file."""
        loop = asyncio.get_running_loop()
        read_db, self._read_db = self._read_db, None
        write_db, self._write_db = self._write_db, None
        if read_db is not None:
            await loop.run_in_executor(self._reader, read_db.close)
        if write_db is not None:
            await loop.run_in_executor(self._writer, write_db.close)
        self._reader.shutdown(wait=False)
        self._writer.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@contextlib.contextmanager
def open_readonly(path: Path) -> Generator[Database, None, None]:
    """A connection that cannot write, for a home whose station is down (or up: it disturbs nobody).

    What a killed station had committed is seen, also when its write-ahead log was never folded in, and also on a file system
    that cannot be written. All reads inside the `with` see the same state. UserError when there is no file or its schema is not ours; StoreFailed otherwise.
    """
    if not path.is_file():
        raise UserError(f"no station has worked in {path.parent}", hint="name its home with --home, or start one with `stationmaster up`")
    with _translated(path), _readable(path) as db:
        _expect_our_schema(db, path)
        db.execute("BEGIN")
        try:
            yield db
        finally:
            db.execute("ROLLBACK")


@contextlib.contextmanager
def _readable(path: Path) -> Generator[Database, None, None]:
    with contextlib.ExitStack() as at_the_end:
        db = at_the_end.enter_context(contextlib.closing(_connect(path, "ro")))
        try:
            _version(db)
        except sqlite3.OperationalError as refused:
            # A write-ahead log needs a file of shared memory beside it, which a read-only file system does not give.
            if refused.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            db = _elsewhere(path, at_the_end)
        yield db


def _elsewhere(path: Path, at_the_end: contextlib.ExitStack) -> Database:
    """The file as it lies there when its log is empty, else a copy of both."""
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return at_the_end.enter_context(contextlib.closing(_connect(path, "ro", immutable=True)))
    folder = Path(at_the_end.enter_context(tempfile.TemporaryDirectory(prefix="stationmaster-")))
    for file in (path, log):
        shutil.copyfile(file, folder / file.name)
    return at_the_end.enter_context(contextlib.closing(_connect(folder / path.name, "ro")))


def rows(db: Database, sql: str, parameters: Sequence[object] | dict[str, object] = ()) -> list[Row]:
    """All rows of a statement. Also for `UPDATE … RETURNING`: fetching only some of its rows would keep the write lock."""
    return db.execute(sql, parameters).fetchall()  # pyright: ignore[reportArgumentType] - typeshed forbids `object` in parameters


def row(db: Database, sql: str, parameters: Sequence[object] | dict[str, object] = ()) -> Row | None:
    """The first row of a statement, the others fetched and dropped; None when there is none."""
    found = rows(db, sql, parameters)
    return found[0] if found else None


def _opened(db: Database | None) -> Database:
    if db is None:
        raise StoreFailed("the store is closed")
    return db


def _connect(path: Path, mode: str, *, immutable: bool = False) -> Database:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, cached_statements=256)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _open_writer(path: Path) -> Database:
    with _translated(path):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StoreFailed(f"cannot open {path}: {error.strerror}") from error
        db = _connect(path, "rw")
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db


def _prepare(db: Database, path: Path) -> None:
    mode = rows(db, "PRAGMA journal_mode = WAL")[0][0]
    if mode != "wal":
        raise StoreFailed(f"{path}: its file system offers no write-ahead log (mode {mode}): use a local disk")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    _migrate(db, path)


def _open_reader(path: Path) -> Database:
    with _translated(path):
        db = _connect(path, "rw")  # a read-only connection could not recover the log that a crash left
        db.execute("PRAGMA query_only = ON")
        return db


def _migrate(db: Database, path: Path) -> None:
    version = _version(db)
    if version > migrations.SCHEMA_VERSION:
        raise _too_new(path, version)
    if version == 0 and rows(db, "SELECT 1 FROM sqlite_schema LIMIT 1"):
        raise UserError(f"{path} was written by another program", hint="choose another --home")
    for number, statements in enumerate(migrations.MIGRATIONS[version:], version + 1):
        _in_transaction(db, "BEGIN IMMEDIATE", lambda db, n=number, s=statements: _apply(db, n, s), path)


def _apply(db: Database, number: int, statements: Sequence[str]) -> None:
    for statement in statements:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {number}")


def _expect_our_schema(db: Database, path: Path) -> None:
    version = _version(db)
    if version > migrations.SCHEMA_VERSION:
        raise _too_new(path, version)
    if version < migrations.SCHEMA_VERSION:
        hint = "start the station once (`stationmaster up`): it brings the file up to date"
        raise UserError(f"{path} has schema {version}, older than this version's {migrations.SCHEMA_VERSION}", hint=hint)


def _version(db: Database) -> int:
    return rows(db, "PRAGMA user_version")[0][0]


def _too_new(path: Path, version: int) -> UserError:
    return UserError(
        f"{path} was written by a newer Stationmaster (schema {version}, this version knows {migrations.SCHEMA_VERSION})",
        hint="upgrade Stationmaster, or choose another --home",
    )


def _in_transaction(db: Database, begin: str, work: Callable[[Database], T], path: Path) -> T:
    with _translated(path):
        db.execute(begin)
        try:
            result = work(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk has SQLite roll back by itself
                db.execute("ROLLBACK")
            raise
        return result


@contextlib.contextmanager
def _translated(path: Path) -> Generator[None, None, None]:
    """SQLite's errors as ours. A constraint that does not hold, or wrong SQL, is a bug and stays what it is."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_room(path)):
            raise StoreFull(f"no room left for {path}") from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreDamaged(f"{path} is damaged or no database: {error}") from error
        raise StoreFailed(f"{path}: {error}") from error


def _no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < NO_ROOM_BYTES
    except OSError:
        return False
