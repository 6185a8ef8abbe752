"""Workspaces: made whole or not at all, and known again (cases G01, G02, G05, G06, G09; failure modes 2 and 3)."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from workspaces.errors import GitFailed, WorkspaceError
from workspaces.snapshot import take_snapshot
from workspaces.workspace import reopen_workspace


def git(path: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=path, check=True, capture_output=True, text=True).stdout.strip()


def everything(folder: Path) -> set[str]:
    return {f"{path.relative_to(folder)}" for path in folder.rglob("*")}


async def test_a_workspace_is_a_clean_checkout_on_a_branch_of_its_own(station) -> None:
    made = await station.workspace("fix-it", 2)
    assert made.path == station.home.resolve() / "workspaces/fix-it/2"
    assert (made.path / "pkg/a.py").read_text() == "a = 1\n"
    assert git(made.path, "symbolic-ref", "HEAD") == "refs/heads/stationmaster/fix-it-2"
    assert git(made.path, "rev-parse", "HEAD") == station.base
    assert git(made.path, "status", "--porcelain") == ""
    assert git(made.path, "remote") == ""
    git(made.path, "fsck", "--strict")


async def test_workspaces_share_no_branches_stashes_or_configuration(station) -> None:
    one, two = await station.workspace("one"), await station.workspace("two")
    git(one.path, "config", "alias.x", "status")
    git(one.path, "branch", "extra")
    (one.path / "readme.txt").write_text("changed\n")
    git(one.path, "-c", "user.name=a", "-c", "user.email=a@b", "stash")
    assert git(two.path, "branch", "--format=%(refname:short)") == "stationmaster/two-1"
    assert git(two.path, "stash", "list") == ""
    assert "alias" not in (two.path / ".git/config").read_text()
    assert station.repo.git("branch", "--format=%(refname:short)") == "main"
    assert station.repo.git("stash", "list") == ""


async def test_g06_thirty_two_at_once_leave_thirty_two_and_nothing_else(station) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(32):
            group.create_task(station.workspace(f"task-{number}"))
    root = station.home / "workspaces"
    assert {path.name for path in root.iterdir()} == {f"task-{number}" for number in range(32)}
    assert all([path.name for path in folder.iterdir()] == ["1"] for folder in root.iterdir())
    assert station.repo.git("branch", "--format=%(refname:short)") == "main"
    assert station.repo.git("worktree", "list").count("\n") == 0


async def test_g06_a_failure_leaves_nothing_behind_and_can_be_repeated(station) -> None:
    before = everything(station.home)
    for _ in range(2):
        with pytest.raises(GitFailed):
            await station.workspace("broken", base="1" * 40)
    left = everything(station.home) - before - {"workspaces"}
    assert {name.rpartition("/stationmaster/")[2] for name in left if "/stationmaster" in name} <= {
        "broken",
        "broken/1",
        "broken/1/lock",
    } | {name for name in left if name.endswith("/stationmaster")}
    assert not [name for name in left if name.startswith("workspaces/")]
    await station.workspace("broken")


@pytest.mark.parametrize("step", ["read-tree", "init", "update-ref", "ls-files"])
async def test_cancelling_leaves_nothing_behind(station, stuck_git, step: str) -> None:
    with stuck_git(step), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await station.workspace("slow")
    assert everything(station.home / "workspaces") == set()
    await station.workspace("slow")


async def test_what_a_killed_station_left_half_made_is_replaced(station) -> None:
    partial = station.home / "workspaces/task/.1.partial"
    partial.mkdir(parents=True)
    (partial / "half").write_text("x")
    made = await station.workspace()
    assert everything(made.path.parent) == {f"1/{name}" for name in everything(made.path)} | {"1"}
    assert not (made.path / "half").exists()


async def test_a_folder_that_exists_is_never_taken_over(station) -> None:
    theirs = station.home / "workspaces/task/1"
    theirs.mkdir(parents=True)
    (theirs / "precious").write_text("x")
    with pytest.raises(WorkspaceError, match="exists already"):
        await station.workspace()
    assert (theirs / "precious").read_text() == "x"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a..b", "a.lock", "-x", "a b", "a~1", "x.", "ü"])
async def test_names_that_are_no_folder_or_no_ref_are_refused(station, name: str) -> None:
    with pytest.raises(WorkspaceError, match="cannot name"):
        await station.workspace(name)


@pytest.mark.parametrize("name", ["a", "fix-1.2_b", "A.b.c", "lock", "a.locker"])
async def test_other_names_are_fine(station, name: str) -> None:
    await take_snapshot(await station.workspace(name), message="m")


async def test_reopening_gives_the_same_workspace(station) -> None:
    made = await station.workspace()
    again = await reopen_workspace(station.hub, root=station.home / "workspaces", task="task", attempt=1, base_commit=station.base)
    assert again == made


async def test_fm2_another_folder_task_attempt_or_base_is_not_that_workspace(station) -> None:
    made = await station.workspace()
    root = station.home / "workspaces"

    async def reopen(task: str = "task", attempt: int = 1, base: str = station.base, where: Path = root) -> None:
        await reopen_workspace(station.hub, root=where, task=task, attempt=attempt, base_commit=base)

    for wrong in ({"task": "other"}, {"attempt": 2}, {"base": "1" * 40}, {"where": station.home}):
        with pytest.raises(WorkspaceError):
            await reopen(**wrong)
    moved = made.path.with_name("moved")
    made.path.rename(moved)
    with pytest.raises(WorkspaceError, match="gone"):
        await reopen()
    shutil.copytree(moved, made.path)
    with pytest.raises(WorkspaceError, match="not the folder"):
        await reopen()
    shutil.rmtree(made.path)
    made.path.symlink_to(moved)
    with pytest.raises(WorkspaceError, match="not the folder"):
        await reopen()


async def test_an_agent_that_deletes_git_or_changes_branch_does_not_stop_the_resumption(station) -> None:
    made = await station.workspace()
    git(made.path, "checkout", "-q", "--detach")
    shutil.rmtree(made.path / ".git")
    root = station.home / "workspaces"
    assert (await reopen_workspace(station.hub, root=root, task="task", attempt=1, base_commit=station.base)).path == made.path


async def test_g02_files_under_lfs_stay_pointers_and_no_filter_runs(repo, open_station, own_home: Path) -> None:
    marker = own_home / "filter-ran"
    repo.put(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    repo.put("a.bin", pointer)
    repo.commit()
    for key, value in (("process", f"touch {marker}; no-such-lfs"), ("smudge", f"touch {marker}"), ("required", "true")):
        repo.git("config", "--global", f"filter.lfs.{key}", value)
        repo.git("config", f"filter.lfs.{key}", value)
    station = await open_station(repo)
    made = await station.workspace()
    assert (made.path / "a.bin").read_text() == pointer
    snapshot = await take_snapshot(made, message="m")
    assert snapshot.files_changed == 0
    assert not marker.exists()


async def test_g01_submodules_are_empty_folders_until_somebody_fills_them(make_repo, repo, open_station) -> None:
    lib = make_repo("lib")
    lib.put("l.txt", "l")
    lib.commit()
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{lib.path}", "vendor/lib")
    repo.commit()
    station = await open_station(repo)
    made = await station.workspace()
    assert list((made.path / "vendor/lib").iterdir()) == []
    assert (await take_snapshot(made, message="m")).files_changed == 0
    (made.path / "vendor/lib/own.txt").write_text("own\n")
    snapshot = await take_snapshot(made, message="m")
    assert "vendor/lib/own.txt" in station.names(snapshot.commit)
    assert await take_snapshot(made, message="m") == snapshot


async def test_g09_post_checkout_hooks_of_templates_do_not_run(station, own_home: Path) -> None:
    template = own_home / "template/hooks"
    template.mkdir(parents=True)
    hook = template / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {own_home / 'ran'}\n")
    hook.chmod(0o755)
    station.repo.git("config", "--global", "init.templateDir", f"{own_home / 'template'}")
    made = await station.workspace()
    assert not (own_home / "ran").exists()
    assert not (made.path / ".git/hooks").exists()
