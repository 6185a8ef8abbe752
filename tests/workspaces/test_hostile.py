"""Nothing that an agent leaves in a workspace runs on the host or redirects what the host writes (failure mode 24).

Each payload would make a marker file. All of what the station does with a workspace is done to it: snapshot, diff, merge, landing.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from workspaces.diff import diff_commits
from workspaces.files import list_files, read_file, walk_files
from workspaces.landing import land_merge
from workspaces.merge import Landed, Prepared, conflicts_with, prepare_merge
from workspaces.snapshot import take_snapshot
from workspaces.workspace import reopen_workspace

Trap = Callable[[Path, str], None]


def git(path: Path, *args: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=path, check=True, capture_output=True)


def script(path: Path, payload: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{payload}\n")
    path.chmod(0o755)


def hooks(path: Path, payload: str) -> None:
    for name in ("pre-commit", "post-index-change", "post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
        script(path / ".git/hooks" / name, payload)
    script(path / ".husky/post-merge", payload)
    git(path, "config", "core.hooksPath", ".husky")


def fsmonitor(path: Path, payload: str) -> None:
    git(path, "config", "core.fsmonitor", f"{payload};")
    git(path, "config", "core.untrackedCache", "true")


def filters(path: Path, payload: str) -> None:
    for key in ("clean", "smudge", "process"):
        git(path, "config", f"filter.evil.{key}", payload)
    git(path, "config", "filter.evil.required", "true")
    (path / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")


def drivers(path: Path, payload: str) -> None:
    for key in (
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "merge.evil.driver",
        "core.pager",
        "core.editor",
        "alias.status",
    ):
        git(path, "config", key, payload if key != "alias.status" else f"!{payload}")
    (path / ".gitattributes").write_text("* diff=evil merge=evil\n")


def transports(path: Path, payload: str) -> None:
    for key, value in (
        ("remote.origin.url", f"ext::sh -c '{payload}'"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialCloneFilter", "blob:none"),
        ("protocol.ext.allow", "always"),
        ("core.sshCommand", payload),
        ("credential.helper", f"!{payload}"),
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
    ):
        git(path, "config", key, value)


def includes(path: Path, payload: str) -> None:
    (path / "more").write_text(f'[core]\n\tfsmonitor = "{payload}"\n\thooksPath = .\n')
    git(path, "config", "include.path", "../more")


def submodules(path: Path, payload: str) -> None:
    (path / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = sub\n\turl = ext::sh -c {payload}\n\tupdate = !{payload}\n')
    git(path, "init", "-q", "sub")
    fsmonitor(path / "sub", payload)
    script(path / "sub/.git/hooks/post-checkout", payload)
    (path / "sub/file").write_text("x")


def a_fake_git(path: Path, payload: str) -> None:
    for name in ("git", "sh", "git-merge", "git-diff-tree"):
        script(path / name, payload)


TRAPS: list[Trap] = [hooks, fsmonitor, filters, drivers, transports, includes, submodules, a_fake_git]


@pytest.mark.parametrize("trap", TRAPS)
async def test_fm24_a_payload_never_runs(station, tmp_path: Path, trap: Trap) -> None:
    marker = tmp_path / "marker"
    made = await station.workspace()
    (made.path / "pkg/a.py").write_text("a = 2\n")
    trap(made.path, f"touch {marker}")
    marker.unlink(missing_ok=True)  # setting the trap may have sprung it

    snapshot = await take_snapshot(made, message="m")
    assert await take_snapshot(made, message="m") == snapshot
    await reopen_workspace(station.hub, root=station.home / "workspaces", task="task", attempt=1, base_commit=station.base)
    assert [file.path for file in await diff_commits(station.hub.path, station.base, snapshot.commit) if file.path == "pkg/a.py"]
    for path in walk_files(made.path):
        read_file(made.path, path)
    list_files(made.path)
    assert await conflicts_with(station.hub, target_commit=station.base, snapshot=snapshot.commit) == ()
    prepared = await prepare_merge(station.hub, branch="main", base_commit=station.base, snapshot=snapshot.commit, message="m")
    assert isinstance(prepared, Prepared)
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (station.repo.path / "pkg/a.py").read_text() == "a = 2\n"
    assert not marker.exists()


async def test_fm24_the_trap_springs_for_a_plain_git(station, tmp_path: Path) -> None:
    """Proof that the payloads are worth something."""
    marker = tmp_path / "marker"
    made = await station.workspace()
    fsmonitor(made.path, f"touch {marker}")
    git(made.path, "status")
    assert marker.exists()


def elsewhere_by_file(workspace: Path, victim: Path) -> None:
    shutil.rmtree(workspace / ".git")
    (workspace / ".git").write_text(f"gitdir: {victim / '.git'}\n")


def elsewhere_by_link(workspace: Path, victim: Path) -> None:
    shutil.rmtree(workspace / ".git")
    (workspace / ".git").symlink_to(victim / ".git")


def elsewhere_by_objects(workspace: Path, victim: Path) -> None:
    (workspace / ".git/objects/info/alternates").write_text(f"{victim / '.git/objects'}\n")
    shutil.rmtree(workspace / ".git/refs")
    (workspace / ".git/refs").symlink_to(victim / ".git/refs")


def elsewhere_by_config(workspace: Path, victim: Path) -> None:
    git(workspace, "config", "core.worktree", f"{victim}")
    (workspace / ".git/commondir").write_text(f"{victim / '.git'}\n")


def elsewhere_by_nesting(workspace: Path, victim: Path) -> None:
    (workspace / "inner").mkdir()
    (workspace / "inner/.git").write_text(f"gitdir: {victim / '.git'}\n")
    (workspace / "inner/file").write_text("x")


def elsewhere_by_files(workspace: Path, victim: Path) -> None:
    for name in (".gitignore", ".gitattributes", ".gitmodules"):
        (workspace / name).symlink_to(victim / "readme.txt")
    shutil.rmtree(workspace / "pkg")
    (workspace / "pkg").symlink_to(victim / "pkg")
    (workspace / ".git/index").unlink()
    (workspace / ".git/index").symlink_to(victim / ".git/index")


@pytest.mark.parametrize(
    "redirect",
    [elsewhere_by_file, elsewhere_by_link, elsewhere_by_objects, elsewhere_by_config, elsewhere_by_nesting, elsewhere_by_files],
)
async def test_a_workspace_that_points_elsewhere_changes_nothing_there(station, make_repo, redirect) -> None:
    victim = make_repo("victim")
    victim.put("readme.txt", "secret\n")
    victim.put("pkg/secret.py", "secret\n")
    victim.commit()

    def look() -> dict[str, tuple[int, int]]:
        return {f"{p}": (p.lstat().st_mtime_ns, p.lstat().st_size) for p in victim.path.rglob("*")}

    before = look()
    made = await station.workspace()
    redirect(made.path, victim.path)
    (made.path / "new.txt").write_text("n\n")
    snapshot = await take_snapshot(made, message="m")
    assert station.show(snapshot.commit, "new.txt") == b"n\n"
    assert await take_snapshot(made, message="m") == snapshot
    assert look() == before
    for name in station.names(snapshot.commit):
        assert station.show(snapshot.commit, name) != b"secret\n"


async def test_the_agents_git_writes_to_the_hub_only_by_leave_of_the_sandbox(station) -> None:
    """A workspace borrows the hub's objects by path: its own commits go to its own store."""
    made = await station.workspace()

    def objects() -> set[str]:
        return {f"{p}" for p in station.hub.objects.rglob("*")}

    before = objects()
    (made.path / "new.txt").write_text("n\n")
    git(made.path, "add", "-A")
    git(made.path, "commit", "-q", "-m", "mine")
    assert objects() == before


async def test_a_hostile_hub_name_cannot_be_had(make_repo, open_station) -> None:
    odd = make_repo("we ird;$(touch x)")
    odd.put("a", "a")
    odd.commit()
    station = await open_station(odd)
    assert station.hub.path.parent == (station.home / "hubs").resolve()
    made = await station.workspace()
    assert {path.name for path in made.path.iterdir()} == {".git", "a"}
