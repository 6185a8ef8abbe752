"""Snapshots hold everything, and nothing disturbs them (cases G08, G15; issue of nested repositories)."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workspaces.errors import WorkspaceError
from workspaces.git import Git
from workspaces.snapshot import take_snapshot

AGENT = ["git", "-c", "user.name=Agent", "-c", "user.email=agent@example.org"]


def git(path: Path, *args: str) -> str:
    return subprocess.run([*AGENT, *args], cwd=path, check=True, capture_output=True, text=True, errors="surrogateescape").stdout.strip()


async def snap(workspace):
    return await take_snapshot(workspace, message="step")


async def test_g08_committed_staged_unstaged_and_untracked_are_all_in(station) -> None:
    made = await station.workspace()
    (made.path / "committed.py").write_text("c\n")
    git(made.path, "add", "-A")
    git(made.path, "commit", "-q", "-m", "agent's own")
    (made.path / "staged.py").write_text("s\n")
    git(made.path, "add", "staged.py")
    (made.path / "pkg/a.py").write_text("a = 10\n")
    (made.path / "new.py").write_text("n\n")
    (made.path / "pkg/b.py").unlink()
    snapshot = await snap(made)
    assert station.names(snapshot.commit) == {"readme.txt", "pkg/a.py", "committed.py", "staged.py", "new.py"}
    assert station.show(snapshot.commit, "pkg/a.py") == b"a = 10\n"
    assert (snapshot.files_changed, snapshot.insertions, snapshot.deletions) == (5, 4, 2)


async def test_looking_does_not_change_the_agents_index_or_repository(station) -> None:
    made = await station.workspace()
    (made.path / "new.py").write_text("n\n")
    git(made.path, "add", "new.py")

    def look() -> dict[str, tuple[int, int]]:
        return {f"{p}": (p.stat().st_mtime_ns, p.stat().st_size) for p in (made.path / ".git").rglob("*") if p.is_file()}

    before = look()
    await snap(made)
    assert look() == before


async def test_snapshots_chain_from_the_base_and_the_ref_follows(station) -> None:
    made = await station.workspace()
    first = await snap(made)
    (made.path / "new.py").write_text("n\n")
    second = await snap(made)
    assert git(station.hub.path, "rev-list", "--parents", second.commit).splitlines()[:2] == [
        f"{second.commit} {first.commit}",
        f"{first.commit} {station.base}",
    ]
    assert git(station.hub.path, "rev-parse", "refs/stationmaster/snapshots/task/1") == second.commit
    assert git(station.hub.path, "log", "-1", "--format=%an %s", second.commit) == "Stationmaster step"


async def test_an_unchanged_workspace_gives_the_same_snapshot_with_one_git_process(station, tmp_path: Path, monkeypatch) -> None:
    made = await station.workspace()
    (made.path / "new.py").write_text("n\n")
    first = await snap(made)
    log = tmp_path / "calls"
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$1" >> {log}\nPATH="{os.environ["PATH"]}" exec git "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert await snap(made) == first
    assert log.read_text().split() == ["ls-files"]
    log.unlink()
    (made.path / "new.py").write_text("n2\n")
    assert (await snap(made)).tree != first.tree
    assert log.read_text().split() == ["ls-files", "update-index", "write-tree", "commit-tree", "update-ref", "diff-tree"]


async def test_going_back_to_the_base_is_a_snapshot_too(station) -> None:
    made = await station.workspace()
    (made.path / "new.py").write_text("n\n")
    await snap(made)
    (made.path / "new.py").unlink()
    back = await snap(made)
    assert (back.files_changed, back.insertions, back.deletions) == (0, 0, 0)
    assert station.names(back.commit) == {"readme.txt", "pkg/a.py", "pkg/b.py"}


async def test_g15_ignored_files_stay_out_but_tracked_ones_stay_in(repo, open_station) -> None:
    repo.put("keep.log", "kept\n")
    repo.git("add", "-f", "keep.log")
    repo.put(".gitignore", "*.log\nout/\n")
    repo.commit()
    made = await (station := await open_station(repo)).workspace()
    (made.path / "other.log").write_text("x")
    (made.path / "out").mkdir()
    (made.path / "out/report.csv").write_text("x")
    (made.path / "keep.log").write_text("changed\n")
    snapshot = await snap(made)
    assert station.names(snapshot.commit) == {".gitignore", "keep.log", "readme.txt", "pkg/a.py", "pkg/b.py"}
    assert station.show(snapshot.commit, "keep.log") == b"changed\n"


async def test_an_ignored_file_that_the_agent_forced_and_committed_is_in(repo, open_station) -> None:
    repo.put(".gitignore", "out/\n")
    repo.commit()
    made = await (station := await open_station(repo)).workspace()
    await snap(made)
    (made.path / "out").mkdir()
    (made.path / "out/report.csv").write_text("x\n")
    (made.path / "out/scratch").write_text("y\n")
    git(made.path, "add", "-f", "out/report.csv")
    git(made.path, "commit", "-q", "-m", "forced")
    snapshot = await snap(made)
    assert "out/report.csv" in station.names(snapshot.commit)
    assert "out/scratch" not in station.names(snapshot.commit)
    assert await snap(made) == snapshot


async def test_the_ignore_file_of_the_user_does_not_count(station, own_home: Path) -> None:
    (own_home / ".config/git").mkdir(parents=True)
    (own_home / ".config/git/ignore").write_text("*.txt\n")
    made = await station.workspace()
    (made.path / "new.txt").write_text("x")
    assert "new.txt" in station.names((await snap(made)).commit)


async def test_modes_links_and_odd_names_are_kept(station) -> None:
    made = await station.workspace()
    (made.path / "run.sh").write_text("#!/bin/sh\n")
    (made.path / "run.sh").chmod(0o755)
    (made.path / "link").symlink_to("pkg/a.py")
    (made.path / "dangling").symlink_to("/nowhere/at all")
    for name in ("new\nline", "tab\there", '"quoted"', "ünï", "-dash", ":(top)x", "*", "a b"):
        (made.path / name).write_text(name)
    (made.path / os.fsdecode(b"bytes-\xff")).write_bytes(b"\xff\x00")
    snapshot = await snap(made)
    listed = git(station.hub.path, "ls-tree", "-z", snapshot.commit).split("\0")
    assert {line.split()[0] for line in listed if line.endswith(("\trun.sh", "\tlink", "\tdangling"))} == {"100755", "120000"}
    assert len(station.names(snapshot.commit)) == 3 + 3 + 8 + 1
    assert station.show(snapshot.commit, "dangling") == b"/nowhere/at all"


async def test_files_become_folders_and_folders_files(station) -> None:
    made = await station.workspace()
    shutil.rmtree(made.path / "pkg")
    (made.path / "pkg").write_text("now a file\n")
    (made.path / "readme.txt").unlink()
    (made.path / "readme.txt").mkdir()
    (made.path / "readme.txt/inner").write_text("x\n")
    snapshot = await snap(made)
    assert station.names(snapshot.commit) == {"pkg", "readme.txt/inner"}
    (made.path / "pkg").unlink()
    shutil.rmtree(made.path / "readme.txt")
    (made.path / "pkg").mkdir()
    (made.path / "pkg/c.py").write_text("c")
    assert station.names((await snap(made)).commit) == {"pkg/c.py"}


async def test_a_folder_that_became_a_link_is_a_link(station, tmp_path: Path) -> None:
    made = await station.workspace()
    (made.path / "pkg").rename(made.path / "moved")
    (made.path / "pkg").symlink_to("moved")
    snapshot = await snap(made)
    assert station.names(snapshot.commit) == {"readme.txt", "pkg", "moved/a.py", "moved/b.py"}
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("secret\n")
    (made.path / "pkg").unlink()
    (made.path / "pkg").symlink_to(outside)
    assert station.names((await snap(made)).commit) == {"readme.txt", "pkg", "moved/a.py", "moved/b.py"}


async def test_sockets_and_pipes_are_passed_over(station) -> None:
    made = await station.workspace()
    os.mkfifo(made.path / "pipe")
    (made.path / "pkg/a.py").unlink()
    os.mkfifo(made.path / "pkg/a.py")
    with socket.socket(socket.AF_UNIX) as sock:
        here = Path.cwd()
        os.chdir(made.path)
        sock.bind("sock")
        os.chdir(here)
        snapshot = await snap(made)
    assert station.names(snapshot.commit) == {"readme.txt", "pkg/b.py"}


@pytest.mark.parametrize("commits", [True, False], ids=["with a commit", "without one"])
async def test_the_files_of_nested_repositories_are_taken_in(station, commits: bool) -> None:
    made = await station.workspace()
    inner = made.path / "tools/inner"
    (inner / "deep").mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "i.py").write_text("i\n")
    (inner / "deep/d.py").write_text("d\n")
    (inner / ".gitignore").write_text("*.tmp\n")
    (inner / "x.tmp").write_text("x")
    if commits:
        git(inner, "add", "-A")
        git(inner, "commit", "-q", "-m", "inner")
    git(inner / "deep", "init", "-q")
    first = await snap(made)
    new = {"tools/inner/i.py", "tools/inner/deep/d.py", "tools/inner/.gitignore"}
    assert station.names(first.commit) == {"readme.txt", "pkg/a.py", "pkg/b.py"} | new
    assert await snap(made) == first
    (inner / "i.py").write_text("i2\n")
    (inner / "deep/more.py").write_text("m\n")
    (inner / "deep/d.py").unlink()
    second = await snap(made)
    assert station.names(second.commit) == {"readme.txt", "pkg/a.py", "pkg/b.py"} | new - {"tools/inner/deep/d.py"} | {
        "tools/inner/deep/more.py"
    }
    assert station.show(second.commit, "tools/inner/i.py") == b"i2\n"


async def test_the_outer_ignore_file_holds_in_nested_repositories(repo, open_station) -> None:
    repo.put(".gitignore", "__pycache__/\n*.o\n")
    repo.commit()
    made = await (station := await open_station(repo)).workspace()
    git(made.path, "init", "-q", "inner")
    (made.path / "inner/__pycache__").mkdir()
    (made.path / "inner/__pycache__/x.pyc").write_text("x")
    (made.path / "inner/y.o").write_text("y")
    (made.path / "inner/z.c").write_text("z")
    snapshot = await snap(made)
    assert {name for name in station.names(snapshot.commit) if name.startswith("inner")} == {"inner/z.c"}


async def test_a_git_folder_made_inside_a_tracked_folder_hides_nothing(station) -> None:
    made = await station.workspace()
    git(made.path / "pkg", "init", "-q")
    git(made.path / "pkg", "add", "-A")
    git(made.path / "pkg", "commit", "-q", "-m", "inner")
    (made.path / "pkg/a.py").write_text("a = 5\n")
    (made.path / "pkg/c.py").write_text("c\n")
    snapshot = await snap(made)
    assert station.names(snapshot.commit) == {"readme.txt", "pkg/a.py", "pkg/b.py", "pkg/c.py"}
    assert station.show(snapshot.commit, "pkg/a.py") == b"a = 5\n"


async def test_a_tracked_file_replaced_by_a_repository_is_taken_in(station) -> None:
    made = await station.workspace()
    (made.path / "readme.txt").unlink()
    git(made.path, "init", "-q", "readme.txt")
    (made.path / "readme.txt/r").write_text("r\n")
    git(made.path / "readme.txt", "add", "-A")
    git(made.path / "readme.txt", "commit", "-q", "-m", "inner")
    assert station.names((await snap(made)).commit) == {"readme.txt/r", "pkg/a.py", "pkg/b.py"}


def _commits(path: Path) -> None:
    (path / "c").write_text("c")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "c")


def _detaches(path: Path) -> None:
    git(path, "checkout", "-q", "--detach")


def _deletes_git(path: Path) -> None:
    shutil.rmtree(path / ".git")


def _breaks_index(path: Path) -> None:
    (path / ".git/index").write_bytes(os.urandom(2_000))


def _leaves_lock(path: Path) -> None:
    (path / ".git/index.lock").write_text("")


def _fills_index(path: Path) -> None:
    blob = git(path, "hash-object", "-w", "readme.txt")
    subprocess.run(
        [*AGENT, "update-index", "--index-info"],
        cwd=path,
        check=True,
        input="".join(f"100644 {blob}\tghost-{n}\n" for n in range(5_000)).encode(),
    )


def _links_index(path: Path) -> None:
    (path / ".git/index").unlink()
    (path / ".git/index").symlink_to("/etc/passwd")


def _hides_index(path: Path) -> None:
    git(path, "update-index", "--assume-unchanged", "pkg/a.py")
    git(path, "update-index", "--skip-worktree", "pkg/b.py")


def _makes_git_a_link(path: Path) -> None:
    (path / ".git").rename(path / "elsewhere")
    (path / ".git").symlink_to("elsewhere")


def _makes_case_git(path: Path) -> None:
    (path / ".GIT").mkdir(exist_ok=True)
    (path / ".GIT/config").write_text("[core]\n")


def _encodes(path: Path) -> None:
    (path / ".gitattributes").write_text("* working-tree-encoding=UTF-16 filter=x ident eol=crlf\n")


@pytest.mark.parametrize(
    "trick",
    [
        _commits,
        _detaches,
        _deletes_git,
        _breaks_index,
        _leaves_lock,
        _fills_index,
        _links_index,
        _hides_index,
        _makes_git_a_link,
        _makes_case_git,
        _encodes,
    ],
)
async def test_what_an_agent_does_to_its_repository_does_not_disturb_the_snapshot(station, trick) -> None:
    made = await station.workspace()
    await snap(made)
    trick(made.path)
    (made.path / "pkg/a.py").write_text("a = 99\n")
    (made.path / "pkg/b.py").write_text("b = 99\n")
    (made.path / "new.py").write_text("n\n")
    snapshot = await snap(made)
    assert station.show(snapshot.commit, "pkg/a.py") == b"a = 99\n"
    assert station.show(snapshot.commit, "pkg/b.py") == b"b = 99\n"
    assert station.show(snapshot.commit, "new.py") == b"n\n"
    assert not [name for name in station.names(snapshot.commit) if name.startswith("ghost") or name.lower().startswith(".git/")]


async def test_a_folder_that_is_closed_to_its_owner_is_opened(station) -> None:
    made = await station.workspace()
    (made.path / "closed").mkdir()
    (made.path / "closed/x").write_text("x")
    (made.path / "closed/x").chmod(0)
    (made.path / "closed").chmod(0)
    (made.path / "pkg/a.py").chmod(0)
    assert station.names((await snap(made)).commit) == {"readme.txt", "pkg/a.py", "pkg/b.py", "closed/x"}


async def test_a_station_killed_between_index_and_commit_makes_up_for_it(station) -> None:
    made = await station.workspace()
    first = await snap(made)
    (made.path / "new.py").write_text("n\n")
    await Git(git_dir=station.hub.path, work_tree=made.path, index=made.index).run("update-index", "--add", "new.py")
    (made.records / "index.lock").write_text("left over")
    second = await snap(made)
    assert second.commit != first.commit
    assert "new.py" in station.names(second.commit)


async def test_lost_records_are_made_again_from_the_hub(station) -> None:
    made = await station.workspace()
    (made.path / "new.py").write_text("n\n")
    first = await snap(made)
    (made.records / "index").unlink()
    (made.records / "snapshot.json").unlink()
    assert await snap(made) == first


async def test_a_workspace_that_is_gone_is_an_error_and_not_an_empty_snapshot(station) -> None:
    made = await station.workspace()
    before = await snap(made)
    made.path.rename(made.path.with_name("away"))
    with pytest.raises(WorkspaceError, match="gone"):
        await snap(made)
    made.path.mkdir()
    with pytest.raises(WorkspaceError, match="not the folder"):
        await snap(made)
    assert git(station.hub.path, "rev-parse", "refs/stationmaster/snapshots/task/1") == before.commit


async def test_many_workspaces_are_snapshot_at_once_and_one_twice(station) -> None:
    made = [await station.workspace(f"t{number}") for number in range(8)]
    for round_ in range(3):
        for number, workspace in enumerate(made):
            (workspace.path / f"f{round_}").write_text(f"{number} {round_}")
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(snap(workspace)) for workspace in (*made, *made)]
        assert [task.result() for task in tasks[:8]] == [task.result() for task in tasks[8:]]
    assert git(station.hub.path, "fsck", "--connectivity-only") == ""


async def test_names_that_git_refuses_are_told_of(station) -> None:
    made = await station.workspace()
    (made.path / "git~1").write_text("refused on account of Windows\n")
    (made.path / "good").write_text("good\n")
    (made.path / ".GIT").mkdir()
    (made.path / ".GIT" / "x").write_text("x\n")
    (made.path / "sub").mkdir()
    (made.path / "sub" / "two\nlines").write_text("fine\n")
    (made.path / "sub" / ".gitmodules").symlink_to("elsewhere")
    taken = await snap(made)
    assert taken.left_out == (".GIT/x", "git~1", "sub/.gitmodules")
    assert {"good", "sub/two\nlines"} <= station.names(taken.commit)
    assert await snap(made) == taken
    (made.path / "git~1").unlink()
    shutil.rmtree(made.path / ".GIT")
    (made.path / "sub" / ".gitmodules").unlink()
    again = await snap(made)
    assert (again.commit, again.left_out) == (taken.commit, ())


async def test_of_many_names_that_git_refuses_a_few_are_told(station) -> None:
    made = await station.workspace()
    for number in range(100):
        (made.path / f"d{number:02}").mkdir()
        (made.path / f"d{number:02}" / "git~1").write_text("x")
    taken = await snap(made)
    assert len(taken.left_out) == 21
    assert taken.left_out[-1] == "and 80 more"


def _dig(folder: Path, name: str, depth: int) -> None:
    """Too deep for a path: from one folder to the next."""
    code = f"import os\nfor n in range({depth}):\n os.mkdir('{name}'); os.chdir('{name}')\nopen('f', 'w').write('x')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def _fill_in(folder: Path) -> None:
    """Nothing else gets rid of such folders."""
    subprocess.run(["rm", "-rf", f"{folder}"], check=True)


@pytest.mark.parametrize("nested", [True, False])
async def test_folders_deeper_than_any_path_are_told_of_and_the_rest_is_taken(station, nested: bool) -> None:
    made = await station.workspace()
    place = made.path
    if nested:
        place = made.path / "inner"
        place.mkdir()
        git(place, "init", "-q")
    _dig(place, "dd", 3_000)
    (place / "good").write_text("good\n")
    try:
        taken = await snap(made)
        assert ("inner/good" if nested else "good") in station.names(taken.commit)
        assert len(taken.left_out) == 1
        assert "dd/dd/dd" in taken.left_out[0]
        assert len(taken.left_out[0]) < 200
    finally:
        _fill_in(place / "dd")


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """As the station has it: git holds a folder open for each level."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_more_levels_than_git_may_open_are_told_of(station) -> None:
    made = await station.workspace()
    _dig(made.path, "d", 300)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        assert (await snap(made)).left_out == (".",)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        _fill_in(made.path / "d")


async def test_folders_as_deep_as_a_path_goes_are_taken(station, many_open_files: None) -> None:
    made = await station.workspace()
    _dig(made.path, "d", 1_500)
    (made.path / "d" / "closed").mkdir(mode=0)
    try:
        taken = await snap(made)
        assert "d/" * 1_500 + "f" in station.names(taken.commit)
        assert taken.left_out == ()
    finally:
        _fill_in(made.path / "d")
