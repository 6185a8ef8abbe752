"""The demo's folder: the same repository everywhere, and nothing deleted that the demo did not make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli.demoplace import make_place, make_repository, remove_place
from orchestrator.errors import UserError

from .conftest import Cli, git


@pytest.fixture
def odd_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody whose git configuration and umask would change a commit if they were obeyed."""
    config = tmp_path / "gitconfig"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    config.write_text(
        f"[user]\nname = Odd\n[commit]\ngpgSign = true\n[core]\nautocrlf = true\nhooksPath = {hooks}\n[init]\ndefaultBranch = trunk\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_the_base_commit_is_the_same_for_everybody(tmp_path: Path) -> None:
    one = make_repository(tmp_path / "one")
    two = make_repository(tmp_path / "two")
    assert git(one, "rev-parse", "HEAD") == git(two, "rev-parse", "HEAD")
    assert git(one, "branch", "--show-current") == "main"
    assert git(one, "status", "--porcelain") == ""
    assert git(one, "config", "--local", "--get-regexp", "^user", ok=(0, 1)) == ""


def test_a_users_configuration_does_not_change_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    plain = git(make_repository(tmp_path / "plain"), "rev-parse", "HEAD")
    request.getfixturevalue("odd_user")
    assert git(make_repository(tmp_path / "odd"), "rev-parse", "HEAD") == plain


def test_a_folder_with_something_in_it_is_refused_and_left_alone(cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work\n")
    done = cli("demo", "--plain", "--keep", mine)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="not a folder"):
        make_place(tmp_path / "file")


def test_a_folder_without_write_permission_is_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    place = make_place(None)
    locked = place.folder / "locked"
    locked.mkdir()
    (locked / "file").touch()
    locked.chmod(0o500)
    remove_place(place)
    assert not place.folder.exists()
