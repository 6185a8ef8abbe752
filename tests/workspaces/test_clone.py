"""Fresh checkouts of a commit: exactly that tree, borrowed from the hub, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from workspaces.clone import fresh_checkout, remove_tree
from workspaces.snapshot import take_snapshot


def files(folder: Path) -> set[str]:
    return {f"{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_checkout_holds_the_snapshot_and_nothing_that_git_ignores(station, tmp_path: Path) -> None:
    made = await station.workspace()
    (made.path / ".gitignore").write_text("secret\n")
    (made.path / "secret").write_text("x")
    (made.path / "run.sh").write_text("exit 0\n")
    (made.path / "run.sh").chmod(0o755)
    (made.path / "link").symlink_to("readme.txt")
    snapshot = await take_snapshot(made, message="work")
    async with fresh_checkout(station.hub, path=tmp_path / "checks/task/1", commit=snapshot.commit) as checkout:
        assert (
            files(checkout.path) == station.names(snapshot.commit) == {".gitignore", "readme.txt", "pkg/a.py", "pkg/b.py", "run.sh", "link"}
        )
        assert os.access(checkout.path / "run.sh", os.X_OK)
        git = station.repo.git
        assert git("status", "--porcelain", "--ignored", cwd=checkout.path) == ""
        assert git("rev-parse", "HEAD", cwd=checkout.path) == snapshot.commit
        assert git("rev-parse", "--abbrev-ref", "HEAD", cwd=checkout.path) == "HEAD"
        assert git("rev-parse", "HEAD~1", cwd=checkout.path) == station.base


async def test_neither_a_filter_nor_a_hook_of_the_commit_runs(station, own_home: Path, tmp_path: Path) -> None:
    made = await station.workspace()
    station.repo.git("config", "--global", "filter.x.smudge", f"touch {own_home / 'ran'}; cat")
    hook = own_home / "template/hooks/post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {own_home / 'ran'}\n")
    hook.chmod(0o755)
    station.repo.git("config", "--global", "init.templateDir", f"{own_home / 'template'}")
    (made.path / ".gitattributes").write_text("* filter=x\n")
    snapshot = await take_snapshot(made, message="work")
    async with fresh_checkout(station.hub, path=tmp_path / "checkout", commit=snapshot.commit) as checkout:
        assert (checkout.path / "readme.txt").read_text() == "hello\n"
        assert not (checkout.path / ".git/hooks").exists()
    assert not (own_home / "ran").exists()


async def test_a_checkout_is_removed_with_whatever_was_written_into_it(station, tmp_path: Path) -> None:
    async with fresh_checkout(station.hub, path=tmp_path / "checks/task/1", commit=station.base) as checkout:
        locked = checkout.path / "pkg/deep/er"
        locked.mkdir(parents=True)
        (locked / "file").write_text("x")
        locked.chmod(0)
        locked.parent.chmod(0)
        (checkout.path / "outside").symlink_to(tmp_path)
    assert names(tmp_path / "checks") == []


async def test_a_checkout_is_removed_when_its_user_is_cancelled(station, tmp_path: Path) -> None:
    made = asyncio.Event()

    async def check() -> None:
        async with fresh_checkout(station.hub, path=tmp_path / "checks/task/1", commit=station.base):
            made.set()
            await asyncio.Event().wait()

    checking = asyncio.ensure_future(check())
    await made.wait()
    assert names(tmp_path / "checks") == ["task"]
    checking.cancel()
    await asyncio.wait([checking])
    assert names(tmp_path / "checks") == []


async def test_what_a_killed_station_left_there_is_replaced(station, tmp_path: Path) -> None:
    place = tmp_path / "checkout"
    (place / ".git").mkdir(parents=True)
    (place / ".git/index.lock").write_text("")
    (place / "stale").write_text("")
    async with fresh_checkout(station.hub, path=place, commit=station.base) as checkout:
        assert files(checkout.path) == station.names(station.base)


def test_a_tree_deeper_than_pythons_own_walk_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    subprocess.run(
        ["sh", "-c", f'mkdir "{folder}" && cd "{folder}" && for i in $(seq 1500); do mkdir d && cd d; done; chmod 0 .'], check=True
    )
    remove_tree(folder)
    assert not folder.exists()
