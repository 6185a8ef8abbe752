"""Landing in checkouts as users really have them, and through crashes (case G14)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from workspaces.hub import Hub, hub_path
from workspaces.landing import land_merge, settle_landing
from workspaces.merge import Landed, Prepared, Refused, prepare_merge
from workspaces.snapshot import take_snapshot

LAND = """
import asyncio, sys
from pathlib import Path
from workspaces.hub import Hub
from workspaces.landing import land_merge
from workspaces.merge import Prepared
hub, repo, target, commit, tree = sys.argv[1:]
prepared = Prepared(target_branch="main", target_commit=target, commit=commit, tree=tree)
asyncio.run(land_merge(Hub(path=Path(hub), repo=Path(repo)), prepared))
"""


def sh(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True)


def station_process(station, prepared: Prepared) -> subprocess.Popen[bytes]:
    arguments = [f"{station.hub.path}", f"{station.repo.path}", prepared.target_commit, prepared.commit, prepared.tree]
    return subprocess.Popen([sys.executable, "-c", LAND, *arguments], cwd=Path(__file__).parents[2])


async def prepare(station, command: str, *, branch: str = "main", task: str = "task") -> Prepared:
    """What an agent's command in a workspace makes, ready to land."""
    made = await station.workspace(task)
    sh(command, made.path)
    snapshot = await take_snapshot(made, message="step")
    prepared = await prepare_merge(station.hub, branch=branch, base_commit=station.base, snapshot=snapshot.commit, message="Do it")
    assert isinstance(prepared, Prepared)
    return prepared


@dataclass
class Gate:
    """A filter of the user's that stops the checkout of `*.slow` until it is let go, and has something to say then."""

    begun: Path
    go: Path

    async def reached(self) -> None:
        await asyncio.to_thread(self.begun.read_text)

    async def open(self) -> None:
        await asyncio.to_thread(self.go.write_text, "go\n")


@pytest.fixture
def gate(repo, tmp_path: Path) -> Gate:
    made = Gate(tmp_path / "begun", tmp_path / "go")
    os.mkfifo(made.begun)
    os.mkfifo(made.go)
    program = tmp_path / "slow"
    program.write_text(f"#!/bin/sh\necho begun > {made.begun}\nread word < {made.go}\necho much to say >&2\nexec cat\n")
    program.chmod(0o755)
    repo.put(".gitattributes", "*.slow filter=slow\n")
    repo.commit()
    repo.git("config", "filter.slow.smudge", f"{program}")
    repo.git("config", "filter.slow.required", "true")
    repo.git("config", "filter.slow.clean", "cat")
    return made


async def test_g14_a_killed_station_leaves_git_to_finish_and_the_next_one_waits_for_it(station, gate: Gate) -> None:
    prepared = await prepare(station, "echo s > a.slow; echo z > z.txt")
    doomed = station_process(station, prepared)
    await gate.reached()
    doomed.kill()
    doomed.wait()
    asked = {"hubs": station.hub.path.parent, "branch": "main", "commit": prepared.commit}
    assert await settle_landing(station.repo.path, **asked, patience_s=0.05) is None
    refused = await land_merge(station.hub, prepared, patience_s=0.05)
    assert isinstance(refused, Refused)
    assert "still at work" in refused.reason
    async with asyncio.TaskGroup() as group:
        settled = group.create_task(settle_landing(station.repo.path, **asked))
        await gate.open()
    assert settled.result() is True
    assert station.repo.git("status", "--porcelain") == ""


async def test_a_cancelled_landing_is_finished_first(station, gate: Gate) -> None:
    prepared = await prepare(station, "echo s > a.slow; echo z > z.txt")
    landing = asyncio.create_task(land_merge(station.hub, prepared))
    await gate.reached()
    landing.cancel()
    await gate.open()
    with pytest.raises(asyncio.CancelledError):
        await landing
    assert station.repo.git("rev-parse", "HEAD") == prepared.commit
    assert station.repo.git("status", "--porcelain") == ""


WORK = "rm pkg/b.py; echo new >> readme.txt; echo 1 > one; mkdir d; echo 2 > d/two; echo x > x.sh; chmod +x x.sh; ln -s one link"


@pytest.mark.parametrize("progress", ["some files", "all files", "the index too"])
async def test_g14_what_a_killed_git_left_half_done_is_finished(station, progress: str) -> None:
    prepared = await prepare(station, WORK)
    repo = station.repo
    repo.put("mine.txt", "mine\n")
    repo.git("fetch", "-q", f"{station.hub.path}", f"refs/stationmaster/merges/{prepared.commit}")
    if progress == "the index too":
        repo.git("read-tree", "-m", "-u", "HEAD", prepared.commit)
    else:
        shutil.rmtree(repo.path / "pkg")
        repo.git("checkout", "-q", "HEAD", "--", "pkg/a.py")
        repo.put("readme.txt", "hello\nnew\n")
        repo.put("one", "1\n")
        (repo.path / "link").symlink_to("one")
        if progress == "all files":
            repo.put("d/two", "2\n")
            repo.put("x.sh", "x\n").chmod(0o755)
    assert await land_merge(station.hub, prepared) == Landed(commit=prepared.commit)
    assert repo.git("status", "--porcelain") == "?? mine.txt"
    assert repo.git("rev-parse", "HEAD") == prepared.commit


@pytest.mark.parametrize("theirs", ["one", "d/two", "x.sh", "link", "readme.txt", "pkg/b.py"])
async def test_what_is_not_the_merged_content_is_the_users_and_stays(station, theirs: str) -> None:
    prepared = await prepare(station, WORK)
    repo = station.repo
    repo.put("readme.txt", "hello\nnew\n")
    repo.put("one", "1\n")
    repo.put(theirs, "mine\n")
    before = repo.git("status", "--porcelain", "-uall")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert theirs in refused.reason
    assert (repo.path / theirs).read_text() == "mine\n"
    assert repo.git("status", "--porcelain", "-uall") == before
    assert repo.git("rev-parse", "HEAD") == station.base


async def test_many_files_in_the_way_are_counted_not_listed(station) -> None:
    prepared = await prepare(station, "for n in $(seq 100); do echo $n > f$n; done")
    for number in range(1, 101):
        station.repo.put(f"f{number}", "mine\n")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "and 97 more" in refused.reason
    assert len(refused.reason) < 400


async def test_folders_and_links_in_the_way_stay(station, tmp_path: Path) -> None:
    prepared = await prepare(station, "echo n > n; mkdir docs; echo f > docs/f")
    repo = station.repo
    repo.put(".git/info/exclude", "n\ndocs\n")
    repo.put("n/mine", "mine\n")
    (tmp_path / "elsewhere").mkdir()
    (repo.path / "docs").symlink_to(tmp_path / "elsewhere")
    assert isinstance(await land_merge(station.hub, prepared), Refused)
    assert (repo.path / "n/mine").read_text() == "mine\n"
    shutil.rmtree(repo.path / "n")
    assert isinstance(await land_merge(station.hub, prepared), Refused)
    assert (repo.path / "docs").is_symlink()
    assert not list((tmp_path / "elsewhere").iterdir())


async def test_a_tracked_link_that_becomes_a_folder_lands(repo, open_station) -> None:
    (repo.path / "docs").symlink_to("pkg")
    repo.commit()
    station = await open_station(repo)
    prepared = await prepare(station, "rm docs; mkdir docs; echo mine > docs/a.py")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (repo.path / "docs/a.py").read_text() == "mine\n"
    assert repo.git("status", "--porcelain") == ""


@pytest.fixture
def with_submodule(repo, make_repo):
    library = make_repo("library")
    library.put("l.txt", "l\n")
    library.commit()
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", f"{library.path}", "vendor/lib")
    repo.commit()
    return repo


@pytest.mark.parametrize("command", ["rmdir vendor/lib; echo o > vendor/lib", "rm -r vendor; echo o > vendor", "echo o > vendor/lib/own"])
async def test_work_in_a_submodule_that_the_merge_replaces_is_kept(with_submodule, open_station, command: str) -> None:
    station = await open_station(with_submodule)
    prepared = await prepare(station, command)
    with_submodule.put("vendor/lib/l.txt", "changed\n")
    with_submodule.put("vendor/lib/mine.txt", "mine\n")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "submodule vendor/lib" in refused.reason
    assert "deinit" in refused.hint
    assert (with_submodule.path / "vendor/lib/l.txt").read_text() == "changed\n"
    assert (with_submodule.path / "vendor/lib/mine.txt").read_text() == "mine\n"
    with_submodule.git("submodule", "deinit", "-q", "--force", "vendor/lib")
    assert isinstance(await land_merge(station.hub, prepared), Landed)


async def test_work_in_a_submodule_that_the_merge_does_not_touch_is_nobodys_business(with_submodule, open_station) -> None:
    station = await open_station(with_submodule)
    prepared = await prepare(station, "echo n > n")
    with_submodule.put("vendor/lib/l.txt", "changed\n")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (with_submodule.path / "vendor/lib/l.txt").read_text() == "changed\n"


async def test_g14_a_branch_that_two_checkouts_hold_is_refused(station, tmp_path: Path) -> None:
    second = tmp_path / "second"
    station.repo.git("worktree", "add", "-q", "--force", f"{second}", "main")
    prepared = await prepare(station, "echo n > n")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert f"{second}" in refused.reason
    assert station.repo.git("status", "--porcelain", cwd=second) == ""
    station.repo.git("worktree", "remove", f"{second}")
    assert isinstance(await land_merge(station.hub, prepared), Landed)


async def test_g14_a_branch_that_is_another_name_is_followed_to_its_checkout(repo, open_station, tmp_path: Path) -> None:
    repo.git("branch", "-m", "main", "trunk")
    repo.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    repo.git("branch", "real")
    repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/real")
    repo.git("worktree", "add", "-q", f"{tmp_path / 'side'}", "real")
    station = await open_station(repo)
    for number, (branch, place) in enumerate([("main", repo.path), ("alias", tmp_path / "side")]):
        prepared = await prepare(station, f"echo n > n{number}", branch=branch, task=f"t{number}")
        assert await land_merge(station.hub, prepared) == Landed(commit=prepared.commit)
        assert repo.git("status", "--porcelain", cwd=place) == ""
        assert (place / f"n{number}").exists()
    repo.git("checkout", "-q", "--detach")
    prepared = await prepare(station, "echo n > n2", branch="main", task="t2")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert repo.git("symbolic-ref", "refs/heads/main") == "refs/heads/trunk"
    assert repo.git("rev-parse", "refs/heads/trunk") == prepared.commit


async def test_a_head_that_is_another_name_is_followed(repo, open_station) -> None:
    repo.git("branch", "trunk")
    repo.git("checkout", "-q", "trunk")
    repo.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    station = await open_station(repo)
    prepared = await prepare(station, "echo n > n", branch="trunk")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("branch.main.mergeoptions", "--squash"),
        ("branch.main.mergeoptions", "-s ours"),
        ("branch.main.mergeoptions", "--no-ff --no-commit"),
        ("merge.ff", "false"),
        ("merge.verifySignatures", "true"),
        ("merge.autoStash", "true"),
        ("pull.twohead", "ours"),
        ("pull.rebase", "true"),
        ("alias.merge", "!false"),
        ("core.splitIndex", "true"),
    ],
)
async def test_the_users_settings_do_not_change_what_lands(station, key: str, value: str) -> None:
    prepared = await prepare(station, "echo n > n")
    station.repo.git("config", key, value)
    assert await land_merge(station.hub, prepared) == Landed(commit=prepared.commit)
    assert station.repo.git("rev-parse", "HEAD") == prepared.commit
    assert station.repo.git("status", "--porcelain") == ""


async def test_a_checkout_that_is_not_clean_afterwards_is_told_of(repo, open_station) -> None:
    station = await open_station(repo)
    prepared = await prepare(station, "printf '*.odd filter=odd\\n' > .gitattributes; printf 'odd\\n' > a.odd")
    repo.git("config", "filter.odd.clean", "date +%N")
    repo.git("config", "filter.odd.smudge", "tr o O")
    landed = await land_merge(station.hub, prepared)
    assert isinstance(landed, Landed)
    assert landed.commit == prepared.commit
    assert "a.odd" in landed.note


async def test_a_checkout_whose_git_directory_lies_elsewhere_is_brought_forward(make_repo, open_station, tmp_path: Path) -> None:
    repo = make_repo("separate")
    repo.git("init", "-q", f"--separate-git-dir={tmp_path / 'git'}", ".")
    repo.put("a", "a\n")
    repo.commit()
    station = await open_station(repo)
    prepared = await prepare(station, "echo n > n")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert repo.git("status", "--porcelain") == ""
    repo.git("worktree", "add", "-q", "-b", "side", f"{tmp_path / 'side'}")
    seen = Hub(path=station.hub.path, repo=tmp_path / "side")
    refused = await land_merge(seen, await prepare(station, "echo m > m", task="t2"))
    assert isinstance(refused, Refused)
    assert "git directory" in refused.reason
    assert repo.git("status", "--porcelain") == ""


async def test_files_that_core_worktree_puts_elsewhere_are_brought_forward(repo, open_station, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for path in list(repo.path.iterdir()):
        if path.name != ".git":
            path.rename(files / path.name)
    repo.git("config", "core.worktree", f"{files}")
    station = await open_station(repo)
    assert station.hub.repo == repo.path
    prepared = await prepare(station, "echo n > n")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (files / "n").exists()
    assert repo.git("status", "--porcelain") == ""


async def test_nothing_to_settle_is_settled_at_once(repo, tmp_path: Path) -> None:
    commit = repo.git("rev-parse", "HEAD")
    assert await settle_landing(repo.path, hubs=tmp_path / "hubs", branch="main", commit=commit) is True
    assert await settle_landing(repo.path, hubs=tmp_path / "hubs", branch="main", commit="1" * 40) is False
    assert await settle_landing(tmp_path / "gone", hubs=tmp_path / "hubs", branch="main", commit=commit) is False
    assert not hub_path(repo.path, hubs=tmp_path / "hubs").exists()
