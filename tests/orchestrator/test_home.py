from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from orchestrator.errors import UserError
from orchestrator.home import SOCKET_PATH_BYTES, Home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_home_and_token_are_their_owners_only(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.path.mkdir(mode=0o755)
    home.ensure()
    assert (mode(home.path), mode(home.token)) == (0o700, 0o600)


def test_the_token_stays_the_same(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.ensure()
    token = home.read_token()
    home.ensure()
    assert token is not None
    assert len(token) == 64
    assert home.read_token() == token


def test_a_long_path_has_its_socket_in_a_short_private_folder(tmp_path: Path) -> None:
    home = Home.at(tmp_path / ("x" * 120))
    home.ensure()
    placed = home.place_socket()
    assert len(os.fsencode(placed)) <= SOCKET_PATH_BYTES
    assert home.socket() == placed
    assert mode(placed.parent) == 0o700
    placed.parent.rmdir()


def test_a_long_temporary_folder_is_no_place_for_the_socket_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("y" * 60)
    deep.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    home = Home.at(tmp_path / ("x" * 120))
    home.ensure()
    placed = home.place_socket()
    assert len(os.fsencode(placed)) <= SOCKET_PATH_BYTES
    placed.parent.rmdir()


def test_a_file_in_the_way_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(UserError, match="as a home"):
        Home.at(tmp_path / "home").ensure()


def test_the_environment_names_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATIONMASTER_HOME", str(tmp_path / "named"))
    assert Home.at(None).path == tmp_path / "named"
    monkeypatch.delenv("STATIONMASTER_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Home.at(None).path == tmp_path / "stationmaster"
