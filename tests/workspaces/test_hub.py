"""Hubs, and what serves as a base (cases G05, G16)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspaces.errors import RepositoryUnusable, WorkspaceError
from workspaces.hub import hub_path, open_hub, resolve_base
from workspaces.merge import target_tip


async def test_the_base_is_head_of_what_the_user_sees(repo) -> None:
    repo.git("checkout", "-q", "-b", "dev")
    repo.put("new.txt", "n")
    commit = repo.commit()
    base = await resolve_base(repo.path / "pkg", None)
    assert (base.commit, base.branch, base.repo) == (commit, "dev", repo.path)


async def test_a_linked_worktree_has_a_base_of_its_own_and_the_same_hub(repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", f"{tmp_path / 'side'}")
    base = await resolve_base(tmp_path / "side", None)
    assert (base.branch, base.repo) == ("side", tmp_path / "side")
    assert hub_path(base.repo, hubs=tmp_path) == hub_path(repo.path, hubs=tmp_path)


async def test_a_bare_repository_serves(repo, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--bare", ".", f"{tmp_path / 'bare.git'}")
    base = await resolve_base(tmp_path / "bare.git", "main")
    assert (base.branch, base.repo) == ("main", tmp_path / "bare.git")
    hub = await open_hub(base.repo, hubs=tmp_path / "hubs", commit=base.commit)
    assert hub.objects.is_dir()


async def test_a_detached_head_works_and_names_no_branch(repo) -> None:
    repo.git("checkout", "-q", "--detach")
    assert (await resolve_base(repo.path, None)).branch is None
    assert (await resolve_base(repo.path, "main")).branch == "main"


@pytest.mark.parametrize("language", ["C", "ko_KR.UTF-8"])
async def test_g05_what_cannot_serve_is_named_with_a_hint(
    make_repo, tmp_path: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", language)
    empty = make_repo("empty")
    with pytest.raises(RepositoryUnusable, match="no commit yet") as failed:
        await resolve_base(empty.path, None)
    assert "commit" in failed.value.hint
    with pytest.raises(RepositoryUnusable, match="not a git repository") as failed:
        await resolve_base(tmp_path, None)
    assert "init" in failed.value.hint
    with pytest.raises(RepositoryUnusable, match="not a folder"):
        await resolve_base(tmp_path / "nowhere", None)
    empty.put("x", "x")
    empty.commit()
    for wrong in ("nonsense", "--all", "-x"):
        with pytest.raises(RepositoryUnusable, match="knows no branch"):
            await resolve_base(empty.path, wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_g16_a_repository_of_somebody_else_is_refused_until_the_user_trusts_it(repo, own_home: Path) -> None:
    for path in (repo.path, *repo.path.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    with pytest.raises(RepositoryUnusable, match="belongs to another user") as failed:
        await resolve_base(repo.path, None)
    assert failed.value.hint.endswith(f"safe.directory {repo.path}")
    (own_home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {repo.path}\n")
    assert (await resolve_base(repo.path, None)).branch == "main"


async def test_the_users_repository_is_not_written(repo, tmp_path: Path) -> None:
    def look() -> dict[str, tuple[int, int]]:
        return {f"{p}": (p.stat().st_mtime_ns, p.stat().st_size) for p in (repo.path / ".git").rglob("*") if p.is_file()}

    before = look()
    base = await resolve_base(repo.path, None)
    await open_hub(repo.path, hubs=tmp_path / "hubs", commit=base.commit)
    assert look() == before


async def test_a_later_commit_comes_into_the_hub_even_when_no_branch_has_it(repo, tmp_path: Path) -> None:
    first = (await resolve_base(repo.path, None)).commit
    await open_hub(repo.path, hubs=tmp_path / "hubs", commit=first)
    repo.git("checkout", "-q", "--detach")
    repo.put("later.txt", "l")
    later = repo.commit()
    repo.git("checkout", "-q", "main")
    hub = await open_hub(repo.path, hubs=tmp_path / "hubs", commit=later)
    assert (await hub.git.run("rev-parse", f"refs/stationmaster/bases/{later}")).decode().strip() == later
    with pytest.raises(RepositoryUnusable, match="does not give commit"):
        await open_hub(repo.path, hubs=tmp_path / "hubs", commit="1" * 40)


def open_in_another_process(repo: Path, hubs: Path, commit: str) -> subprocess.CompletedProcess[bytes]:
    code = (
        "import asyncio, sys; from pathlib import Path; from workspaces.hub import open_hub\n"
        "asyncio.run(open_hub(Path(sys.argv[1]), hubs=Path(sys.argv[2]), commit=sys.argv[3]))"
    )
    here = Path(__file__).parents[2]
    return subprocess.run([sys.executable, "-c", code, f"{repo}", f"{hubs}", commit], cwd=here, capture_output=True)


async def test_many_callers_in_two_processes_make_one_hub(repo, tmp_path: Path) -> None:
    commit = (await resolve_base(repo.path, None)).commit
    hubs = tmp_path / "hubs"
    async with asyncio.TaskGroup() as group:
        other = group.create_task(asyncio.to_thread(open_in_another_process, repo.path, hubs, commit))
        opened = [group.create_task(open_hub(repo.path, hubs=hubs, commit=commit)) for _ in range(16)]
    assert other.result().returncode == 0, other.result().stderr
    assert [task.result().path for task in opened] == [path for path in hubs.iterdir() if path.suffix == ".git"] * 16
    assert not list(hubs.glob("*.partial"))


async def test_a_repository_that_borrows_objects_gives_a_hub_that_does_not(repo, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--shared", ".", f"{tmp_path / 'borrower'}")
    base = await resolve_base(tmp_path / "borrower", None)
    hub = await open_hub(base.repo, hubs=tmp_path / "hubs", commit=base.commit)
    assert not (hub.objects / "info" / "alternates").exists()
    await hub.git.run("fsck", "--strict")


async def test_a_shallow_repository_serves(repo, tmp_path: Path) -> None:
    repo.put("second", "2")
    repo.commit()
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", f"{tmp_path / 'shallow'}")
    base = await resolve_base(tmp_path / "shallow", None)
    hub = await open_hub(base.repo, hubs=tmp_path / "hubs", commit=base.commit)
    assert (hub.path / "shallow").exists()


@pytest.mark.slow
async def test_many_loose_objects_become_one_pack(repo, tmp_path: Path) -> None:
    for number in range(4_000):
        repo.put(f"many/{number}", f"{number}\n")
    repo.git("config", "gc.auto", "0")
    commit = repo.commit()
    hub = await open_hub(repo.path, hubs=tmp_path / "hubs", commit=commit)
    assert len(list((hub.objects / "pack").glob("*.pack"))) == 1
    assert (await hub.git.run("count-objects")).startswith(b"0 objects")
    assert repo.git("count-objects").startswith("40")


async def test_a_folder_with_files_is_not_hinted_into_an_empty_base(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(RepositoryUnusable) as failed:
        await resolve_base(folder, None)
    assert "--allow-empty" in failed.value.hint
    (folder / "file").write_text("f")
    with pytest.raises(RepositoryUnusable) as failed:
        await resolve_base(folder, None)
    assert "add -A" in failed.value.hint
    assert "--allow-empty" not in failed.value.hint


async def test_a_clone_without_its_files_is_told_how_to_fetch_them(repo, tmp_path: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo.path}", f"{partial}")
    with pytest.raises(RepositoryUnusable, match="3 files") as failed:
        await resolve_base(partial, None)
    hint = failed.value.hint.split(": ", 1)[1].split()
    assert hint[:3] == ["git", "-C", f"{partial}"]
    repo.git(*hint[3:], cwd=partial)
    assert (await resolve_base(partial, None)).branch == "main"


async def test_a_repository_that_was_moved_is_said_to_be_gone(station) -> None:
    station.repo.path.rename(station.repo.path.with_name("moved"))
    with pytest.raises(WorkspaceError, match="cannot be started") as failed:
        await target_tip(station.repo.path, "main")
    assert "timed out" not in f"{failed.value}"
    assert "moved" in failed.value.hint
