"""Merges that harm nobody (case G14; failure modes 15 and 17)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workspaces.errors import RepositoryUnusable, WorkspaceError
from workspaces.landing import has_landed, land_merge
from workspaces.merge import (
    Conflicts,
    Landed,
    Prepared,
    Refused,
    conflicts_with,
    prepare_merge,
    target_tip,
)
from workspaces.snapshot import take_snapshot


async def work(station, **files: str):
    made = await station.workspace()
    for name, text in files.items():
        (made.path / name.replace("__", "/")).write_text(text)
    return await take_snapshot(made, message="step")


async def prepare(station, snapshot, branch: str = "main", message: str = "Do it\n\nbody") -> Prepared | Conflicts | Refused:
    return await prepare_merge(station.hub, branch=branch, base_commit=station.base, snapshot=snapshot.commit, message=message)


async def test_a_clean_checkout_is_brought_forward_by_one_commit_of_the_users(station) -> None:
    station.repo.put("untracked.txt", "mine\n")
    prepared = await prepare(station, await work(station, new="n\n"))
    assert isinstance(prepared, Prepared)
    assert await land_merge(station.hub, prepared) == Landed(commit=prepared.commit)
    assert (
        station.repo.git("log", "-1", "--format=%P|%an|%ae|%cn|%s|%b")
        == f"{station.base}|Ursula User|ursula@example.org|Ursula User|Do it|body"
    )
    assert (station.repo.path / "new").read_text() == "n\n"
    assert station.repo.git("status", "--porcelain") == "?? untracked.txt"
    assert await has_landed(station.repo.path, "main", prepared.commit)


async def test_without_an_identity_the_commit_is_stationmasters(station) -> None:
    station.repo.git("config", "--unset", "user.name")
    prepared = await prepare(station, await work(station, new="n\n"))
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert station.repo.git("log", "-1", "--format=%an") == "Stationmaster"


async def test_a_branch_that_nobody_has_checked_out_is_moved_by_compare_and_swap(station) -> None:
    station.repo.git("branch", "release")
    prepared = await prepare(station, await work(station, new="n\n"), branch="release")
    assert await land_merge(station.hub, prepared) == Landed(commit=prepared.commit)
    assert station.repo.git("rev-parse", "release") == prepared.commit
    assert station.repo.git("rev-parse", "main") == station.base
    assert not (station.repo.path / "new").exists()


async def test_a_linked_checkout_of_the_branch_is_the_one_brought_forward(station, tmp_path: Path) -> None:
    station.repo.git("worktree", "add", "-q", "-b", "side", f"{tmp_path / 'side'}")
    prepared = await prepare(station, await work(station, new="n\n"), branch="side")
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (tmp_path / "side/new").exists()
    assert station.repo.git("status", "--porcelain", cwd=tmp_path / "side") == ""
    assert not (station.repo.path / "new").exists()


async def test_a_bare_repository_is_merged_into(repo, open_station, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--bare", ".", f"{tmp_path / 'bare.git'}")
    repo.path = tmp_path / "bare.git"
    station = await open_station(repo)
    prepared = await prepare(station, await work(station, new="n\n"))
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert repo.git("rev-parse", "main") == prepared.commit


@pytest.mark.parametrize("staged", [True, False])
async def test_g14_uncommitted_changes_of_the_user_are_left_alone(station, staged: bool) -> None:
    snapshot = await work(station, new="n\n")
    prepared = await prepare(station, snapshot)
    station.repo.put("readme.txt", "edited\n")
    if staged:
        station.repo.git("add", "-A")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "uncommitted changes (readme.txt)" in refused.reason
    assert "stash" in refused.hint
    assert (station.repo.path / "readme.txt").read_text() == "edited\n"
    assert station.repo.git("rev-parse", "main") == station.base
    station.repo.git("stash")
    assert isinstance(await land_merge(station.hub, prepared), Landed)


@pytest.mark.parametrize("ignored", [True, False])
async def test_untracked_and_ignored_files_are_never_overwritten(station, ignored: bool) -> None:
    if ignored:
        station.repo.put(".git/info/exclude", "new\n")
    prepared = await prepare(station, await work(station, new="theirs\n"))
    station.repo.put("new", "precious\n")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "new" in refused.reason
    assert (station.repo.path / "new").read_text() == "precious\n"
    assert station.repo.git("rev-parse", "main") == station.base


async def test_a_checkout_in_the_middle_of_something_is_left_alone(station) -> None:
    repo = station.repo
    prepared = await prepare(station, await work(station, new="n\n"))
    repo.git("checkout", "-q", "-b", "other")
    repo.put("readme.txt", "other\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    (repo.path / ".git/MERGE_HEAD").write_text(repo.git("rev-parse", "other") + "\n")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "middle of a merge" in refused.reason
    (repo.path / ".git/MERGE_HEAD").unlink()
    (repo.path / ".git/index.lock").write_text("")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "another git" in refused.reason


async def test_a_branch_that_is_being_rebased_is_left_alone(repo, open_station) -> None:
    repo.put("readme.txt", "two\n")
    repo.commit()
    repo.git("branch", "clash", "HEAD~1")
    station = await open_station(repo)
    prepared = await prepare(station, await work(station, new="n\n"))
    repo.git("checkout", "-q", "clash")
    repo.put("readme.txt", "three\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    with pytest.raises(AssertionError):
        repo.git("rebase", "clash")
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "middle of a rebase" in refused.reason


async def test_g14_a_branch_that_moved_after_the_preparation_needs_a_new_review(station) -> None:
    prepared = await prepare(station, await work(station, new="n\n"))
    station.repo.put("else.txt", "e\n")
    moved = station.repo.commit()
    refused = await land_merge(station.hub, prepared)
    assert isinstance(refused, Refused)
    assert "moved on" in refused.reason
    assert station.repo.git("rev-parse", "main") == moved


async def test_work_on_an_older_base_merges_with_what_came_since(station) -> None:
    snapshot = await work(station, new="n\n")
    station.repo.put("else.txt", "e\n")
    tip = station.repo.commit()
    assert await conflicts_with(station.hub, target_commit=tip, snapshot=snapshot.commit) == ()
    prepared = await prepare(station, snapshot)
    assert isinstance(prepared, Prepared)
    assert prepared.target_commit == tip == await target_tip(station.repo.path, "main")
    await land_merge(station.hub, prepared)
    assert {path.name for path in station.repo.path.iterdir()} == {".git", "pkg", "readme.txt", "else.txt", "new"}


async def test_conflicts_are_named_and_leave_nothing_behind(station) -> None:
    snapshot = await work(station, readme="x", **{"readme.txt": "agent\n", "pkg__a.py": "agent\n"})
    station.repo.put("readme.txt", "user\n")
    station.repo.put("pkg/a.py", "user\n")
    tip = station.repo.commit()
    assert await conflicts_with(station.hub, target_commit=tip, snapshot=snapshot.commit) == ("pkg/a.py", "readme.txt")
    assert await prepare(station, snapshot) == Conflicts(paths=("pkg/a.py", "readme.txt"))
    assert station.repo.git("status", "--porcelain") == ""
    assert station.repo.git("rev-parse", "main") == tip


async def test_g14_landing_twice_lands_once(station) -> None:
    prepared = await prepare(station, await work(station, new="n\n"))
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    station.repo.put("more.txt", "m\n")
    station.repo.commit()
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert station.repo.git("rev-list", "--count", "main") == "3"


async def test_fm17_a_change_that_the_branch_holds_already_is_said_to_be_there(station) -> None:
    snapshot = await work(station, new="n\n")
    await land_merge(station.hub, await prepare(station, snapshot))
    refused = await prepare(station, snapshot)
    assert isinstance(refused, Refused)
    assert "holds this change already" in refused.reason


async def test_a_missing_branch_and_a_rewritten_one_are_refused(station) -> None:
    snapshot = await work(station, new="n\n")
    refused = await prepare(station, snapshot, branch="gone")
    assert isinstance(refused, Refused)
    assert "no branch 'gone'" in refused.reason
    with pytest.raises(RepositoryUnusable):
        await target_tip(station.repo.path, "gone")
    station.repo.git("checkout", "-q", "--orphan", "fresh")
    station.repo.commit()
    station.repo.git("branch", "-f", "main", "fresh")
    refused = await prepare(station, snapshot)
    assert isinstance(refused, Refused)
    assert "no longer holds" in refused.reason


async def test_the_users_hooks_do_not_run(station, tmp_path: Path) -> None:
    for name in ("post-merge", "reference-transaction", "post-checkout", "pre-merge-commit"):
        hook = station.repo.put(f".git/hooks/{name}", f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        hook.chmod(0o755)
    assert isinstance(await land_merge(station.hub, await prepare(station, await work(station, new="n\n"))), Landed)
    assert not (tmp_path / "ran").exists()


async def test_g02_the_users_filters_do_run_in_the_users_checkout(repo, open_station) -> None:
    repo.put(".gitattributes", "*.up filter=upper\n")
    repo.commit()
    repo.git("config", "--global", "filter.upper.smudge", "tr a-z A-Z")
    repo.git("config", "--global", "filter.upper.clean", "tr A-Z a-z")
    station = await open_station(repo)
    prepared = await prepare(station, await work(station, **{"x.up": "text\n"}))
    assert isinstance(await land_merge(station.hub, prepared), Landed)
    assert (repo.path / "x.up").read_text() == "TEXT\n"
    assert repo.git("status", "--porcelain") == ""


async def test_nothing_has_landed_in_what_is_not_there(station, tmp_path: Path) -> None:
    assert not await has_landed(tmp_path / "nowhere", "main", station.base)
    assert not await has_landed(station.repo.path, "gone", station.base)
    assert not await has_landed(station.repo.path, "main", "1" * 40)
    assert await has_landed(station.repo.path, "main", station.base)


async def test_what_is_missing_is_no_conflict(station) -> None:
    snapshot = await work(station, **{"readme.txt": "agent\n"})
    with pytest.raises(WorkspaceError, match="not in") as failed:
        await conflicts_with(station.hub, target_commit=station.base, snapshot="1" * 40)
    assert "retry" in failed.value.hint
    station.repo.put("readme.txt", "user\n")
    station.repo.commit()
    blob = station.repo.git("rev-parse", f"{station.base}:readme.txt")
    for place in (station.hub.objects, station.repo.path / ".git" / "objects"):
        (place / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError) as failed:
        await prepare(station, snapshot)
    assert "fsck" in failed.value.hint
    shutil.rmtree(station.hub.path)
    with pytest.raises(WorkspaceError) as failed:
        await conflicts_with(station.hub, target_commit=station.base, snapshot=snapshot.commit)
    assert "timed out" not in f"{failed.value}"
    assert failed.value.hint
