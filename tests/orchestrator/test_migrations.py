from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator import migrations
from orchestrator.errors import UserError
from orchestrator.store import Database, Store, open_readonly, rows

TABLES = {"task", "dependency", "attempt", "check_result", "event", "message", "setting", "merge", "look"}


def schema(db: Database) -> dict[str, str]:
    return {
        it["name"]: it["sql"] for it in rows(db, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    }


async def test_a_new_file_gets_all_steps(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        made = await store.read(schema)
        assert set(made) == TABLES
        assert await store.read(lambda db: rows(db, "PRAGMA user_version")[0][0]) == len(migrations.MIGRATIONS)
        assert await store.read(lambda db: rows(db, "PRAGMA journal_mode")[0][0]) == "wal"


async def test_every_table_is_strict(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        loose = [name for name, sql in (await store.read(schema)).items() if not re.search(r"\)\s*STRICT\b[^)]*$", sql)]
    assert loose == []


async def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        before = await store.read(schema)
    async with await Store.open(path) as store:
        assert await store.read(schema) == before


async def test_foreign_keys_hold(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "station.db") as store:
        with pytest.raises(Exception, match="FOREIGN KEY"):
            await store.write(lambda db: rows(db, "INSERT INTO look (task, snapshot_commit, at) VALUES ('nobody', 'c', 1.0)"))


async def test_an_older_file_is_not_read_past_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "station.db"
    async with await Store.open(path) as store:
        await store.write(lambda db: rows(db, "PRAGMA user_version = 0"))
    with pytest.raises(UserError, match="older") as refused, open_readonly(path):
        pass
    assert "stationmaster up" in refused.value.hint
