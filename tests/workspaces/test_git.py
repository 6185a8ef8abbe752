"""Git as the station runs it (cases G04, G09, G16)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from workspaces.errors import GitFailed
from workspaces.git import Git, git_problem, read_commit


async def test_g09_variables_that_point_elsewhere_are_not_obeyed(repo, make_repo, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_repo("other")
    other.put("x", "x")
    theirs = other.commit("theirs")
    monkeypatch.setenv("GIT_DIR", f"{other.path / '.git'}")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{other.path / '.git/index'}")
    monkeypatch.setenv("GIT_WORK_TREE", f"{other.path}")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert (await Git(cwd=repo.path).run("rev-parse", "HEAD")).decode().strip() != theirs


async def test_hooks_and_fsmonitor_of_a_repository_do_not_run(repo, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    hook = repo.put(".git/hooks/reference-transaction", f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    repo.git("config", "core.fsmonitor", f"touch {marker}; false")
    head = (await Git(cwd=repo.path).run("rev-parse", "HEAD")).decode().strip()
    marker.unlink(missing_ok=True)
    await Git(cwd=repo.path).run("update-ref", "refs/heads/x", head)
    await Git(cwd=repo.path).run("status", "--porcelain")
    assert not marker.exists()


async def test_a_failure_tells_what_git_said(repo) -> None:
    with pytest.raises(GitFailed) as failed:
        await Git(cwd=repo.path).run("rev-parse", "--verify", "nonsense")
    assert failed.value.exit_code == 128
    assert "Needed a single revision" in failed.value.stderr
    assert failed.value.argv[:2] == ("git", "rev-parse")


async def test_a_missing_folder_is_told_from_a_missing_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitFailed, match="gone"):
        await Git(cwd=tmp_path / "gone").run("version")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert "install git" in (await git_problem() or "")


async def test_g16_a_git_that_floods_stderr_and_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' e >&2\necho said\nexec sleep 600\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailed, match="timed out") as failed:
        await Git(cwd=tmp_path).run("status", timeout_s=0.5)
    assert len(failed.value.stderr) <= 2_000


async def test_control_characters_do_not_reach_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nprintf 'bad \\033[2J \\377' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailed) as failed:
        await Git(cwd=tmp_path).run("status")
    assert failed.value.stderr == "bad ?[2J \\xff"


async def test_reading_a_commit_leaves_no_child_behind(station) -> None:
    before = {child.pid for child in psutil.Process().children()}
    found = await read_commit(station.hub.path, station.base)
    assert (found.id, found.parents, found.message) == (station.base, (), "first\n")
    assert found.tree == station.repo.git("rev-parse", f"{station.base}^{{tree}}")
    assert {child.pid for child in psutil.Process().children()} <= before
    with pytest.raises(GitFailed):
        await read_commit(station.hub.path, "1" * 40)


async def test_this_machines_git_is_new_enough() -> None:
    assert await git_problem() is None


def test_importing_the_package_does_not_import_gitpython() -> None:
    code = "import sys, workspaces.git, workspaces.merge, workspaces.bubblewrap; print('git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
