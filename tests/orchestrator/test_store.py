from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import UserError
from orchestrator.migrations import SCHEMA_VERSION
from orchestrator.store import Database, Store, StoreDamaged, StoreFailed, StoreFull, open_readonly, row, rows

PUT = "INSERT INTO setting (key, value) VALUES (?, '1')"


def keys(db: Database) -> list[str]:
    return [found["key"] for found in rows(db, "SELECT key FROM setting ORDER BY key")]


def put(db: Database, key: str) -> None:
    db.execute(PUT, (key,))


def modes_in(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_a_write_is_seen_by_the_next_read(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        await store.write(lambda db: put(db, "a"))
        assert await store.read(keys) == ["a"]


async def test_the_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        await store.write(lambda db: put(db, "a"))
        modes = modes_in(tmp_path)
    assert modes == {"station.db": 0o600, "station.db-wal": 0o600, "station.db-shm": 0o600}


async def test_an_error_rolls_the_whole_transaction_back(tmp_path: Path) -> None:
    def work(db: Database) -> None:
        put(db, "a")
        raise UserError("no")

    async with await Store.open(tmp_path / "station.db") as store:
        with pytest.raises(UserError):
            await store.write(work)
        assert await store.read(keys) == []


async def test_a_read_cannot_write(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        with pytest.raises(StoreFailed, match="readonly"):
            await store.read(lambda db: put(db, "a"))


async def test_commits_are_told_in_order_also_when_the_caller_was_cancelled(tmp_path: Path) -> None:
    told: list[int] = []

    def numbered(number: int) -> int:
        return number

    async with await Store.open(tmp_path / "station.db") as store:
        writes = [asyncio.ensure_future(store.write(lambda _, n=n: numbered(n), committed=told.append)) for n in range(50)]
        await writes[10]
        for write in writes[20:]:
            write.cancel()
        await asyncio.wait(writes)
        await store.write(lambda _: -1, committed=told.append)
    done = [number for number, write in enumerate(writes) if not write.cancelled()]
    assert told == [*sorted(told[:-1]), -1]
    assert set(done) <= set(told)


async def test_what_a_full_disk_refuses_can_be_written_again_once_there_is_room(tmp_path: Path) -> None:
    def fill(db: Database) -> None:
        for number in range(1000):
            db.execute("INSERT INTO setting (key, value) VALUES (?, ?)", (f"k{number:04}", "x" * 4000))

    async with await Store.open(tmp_path / "station.db") as store:
        await store.write(lambda db: put(db, "before"))
        await store.write(lambda db: rows(db, "PRAGMA max_page_count = 120"))  # SQLite's own limit answers as a full disk does
        with pytest.raises(StoreFull, match="no room"):
            await store.write(fill)
        assert await store.read(keys) == ["before"]
        await store.write(lambda db: put(db, "small"))
        await store.write(lambda db: rows(db, "PRAGMA max_page_count = 100000"))
        await store.write(fill)
        assert len(await store.read(keys)) == 1002


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "station.db")
    await store.aclose()
    with pytest.raises((StoreFailed, RuntimeError)):
        await store.write(keys)


async def test_a_newer_schema_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        await store.write(lambda db: put(db, "a"))
    async with await Store.open(path) as store:
        await store.write(lambda db: db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}"))
    with pytest.raises(UserError, match="newer Stationmaster") as refused:
        await Store.open(path)
    assert "upgrade" in refused.value.hint
    with pytest.raises(UserError, match="newer Stationmaster"), open_readonly(path):
        pass


async def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        await store.write(lambda db: db.execute("PRAGMA user_version = 0"))
    with pytest.raises(UserError, match="another program"):
        await Store.open(path)


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    path.write_bytes(b"This is a letter, not a database. " * 200)
    with pytest.raises(StoreDamaged, match=r"station\.db"):
        await Store.open(path)
    with pytest.raises(StoreDamaged), open_readonly(path):
        pass


async def test_a_damaged_page_is_an_error_not_an_empty_answer(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        await store.write(lambda db: [put(db, f"k{number:05}") for number in range(5000)])
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    for start in range(page, len(data), page):
        data[start + 8 : start + 200] = b"\xff" * 192
    path.write_bytes(data)
    with pytest.raises(StoreDamaged):
        async with await Store.open(path) as store:
            await store.read(keys)


async def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="No such file"):
        await Store.open(tmp_path / "missing" / "station.db")


def test_a_home_where_no_station_has_worked_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no station has worked") as refused, open_readonly(tmp_path / "station.db"):
        pass
    assert "--home" in refused.value.hint


async def test_a_reader_of_an_idle_home_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "a home with ?#% in it" / "station.db"
    path.parent.mkdir()
    async with await Store.open(path) as store:
        await store.write(lambda db: put(db, "a"))
    with open_readonly(path) as db:
        assert keys(db) == ["a"]
        with pytest.raises(Exception, match="readonly"):
            put(db, "b")


async def test_all_reads_of_one_visit_see_the_same_state(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        await store.write(lambda db: put(db, "a"))
        with open_readonly(path) as db:
            assert keys(db) == ["a"]
            await store.write(lambda db: put(db, "b"))
            assert keys(db) == ["a"]
        with open_readonly(path) as db:
            assert keys(db) == ["a", "b"]


KILLED = """
import asyncio, sys
from pathlib import Path
from orchestrator.store import Store

def work(db):
    for number in range(3000):
        db.execute("INSERT INTO setting (key, value) VALUES (?, ?)", (f"lost{number}", "x" * 1000))
    print("in the middle", flush=True)
    sys.stdin.read()

async def main():
    store = await Store.open(Path(sys.argv[1]))
    for number in range(20):
        await store.write(lambda db: db.execute("INSERT INTO setting (key, value) VALUES (?, '1')", (f"kept{number:02}",)))
    await store.write(work)

asyncio.run(main())
"""


def kill_in_mid_transaction(path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"in the middle\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()


async def test_q1_a_writer_killed_in_mid_transaction_loses_that_transaction_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    kill_in_mid_transaction(path)
    assert (tmp_path / "station.db-wal").stat().st_size > 0
    kept = [f"kept{number:02}" for number in range(20)]
    with open_readonly(path) as db:  # a home whose station is down: before anybody has recovered the log
        assert keys(db) == kept
        assert row(db, "PRAGMA user_version")[0] == SCHEMA_VERSION  # type: ignore[index]
    async with await Store.open(path) as store:
        assert await store.read(keys) == kept
        assert await store.read(lambda db: [tuple(it) for it in rows(db, "PRAGMA integrity_check")]) == [("ok",)]
        await store.write(lambda db: put(db, "new"))
