"""What stays in sight below hidden folders, and what never does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from workspaces.toolchains import Sight, Toolchains


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home/ann"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def show(home: Path) -> Callable[..., Sight]:
    def of(*entries: Path, station: Path | None = None) -> Sight:
        chains = Toolchains(hidden=[home.parent], homes=[home], forbidden=[station or home / ".local/state/stationmaster"])
        return chains.show_path(":".join(f"{entry}" for entry in entries))

    return of


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python(prefix: Path) -> Path:
    """A Python as it lies when it is installed at `prefix`."""
    (prefix / "lib/python3.11").mkdir(parents=True)
    (prefix / "lib/python3.11/os.py").write_text("")
    binary = program(prefix / "bin/python3.11")
    (prefix / "bin/python3").symlink_to("python3.11")
    return binary


def venv(prefix: Path, base: Path) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11.7\n")
    (prefix / "bin/python3").symlink_to(base / "python3.11")


def test_a_virtual_environment_brings_the_python_it_was_made_from(home: Path, show) -> None:
    python(home / ".pyenv/versions/3.11.7")
    venv(home / "project/.venv", home / ".pyenv/versions/3.11.7/bin")
    seen = show(home / "project/.venv/bin")
    assert home / "project/.venv" in seen.folders
    assert home / ".pyenv/versions/3.11.7" in seen.folders
    assert home / "project" not in seen.folders


def test_uv_is_followed_through_links_of_folders_and_of_files(home: Path, show) -> None:
    python(home / ".local/share/uv/python/cpython-3.11.9")
    (home / ".local/share/uv/python/cpython-3.11").symlink_to("cpython-3.11.9")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/python3.11").symlink_to(home / ".local/share/uv/python/cpython-3.11/bin/python3.11")
    venv(home / "venv", home / ".local/bin")
    seen = show(home / "venv/bin")
    assert home / ".local/share/uv/python/cpython-3.11.9" in seen.folders
    assert seen.links[home / ".local/share/uv/python/cpython-3.11"] == "cpython-3.11.9"
    assert home / ".local" not in seen.folders
    assert home / ".local/share" not in seen.folders


def test_shims_bring_the_whole_of_what_they_stand_for(home: Path, show) -> None:
    root = home / ".pyenv"
    python(root / "versions/3.12.1")
    program(root / "libexec/pyenv", "#!/bin/sh\n")
    program(root / "shims/python3", "#!/bin/sh\n")
    assert show(root / "shims").folders >= {root}


def test_local_bin_does_not_show_local_and_cargo_not_its_credentials(home: Path, show) -> None:
    program(home / ".local/bin/tool")
    (home / ".local/share/keyrings").mkdir(parents=True)
    program(home / ".cargo/bin/rustup")
    (home / ".cargo/credentials.toml").write_text("s3cret")
    (home / ".rustup/toolchains").mkdir(parents=True)
    assert show(home / ".local/bin", home / ".cargo/bin").folders == {home / ".local/bin", home / ".cargo/bin", home / ".rustup"}


def test_a_python_installed_into_local_shows_its_library_alone(home: Path, show) -> None:
    python(home / ".local")
    assert show(home / ".local/bin").folders == {home / ".local/bin", home / ".local/lib/python3.11"}


def test_a_tool_of_pipx_brings_its_environment(home: Path, show) -> None:
    python(home / ".pyenv/versions/3.11.7")
    venv(home / ".local/pipx/venvs/black", home / ".pyenv/versions/3.11.7/bin")
    program(home / ".local/pipx/venvs/black/bin/black", f"#!{home}/.local/pipx/venvs/black/bin/python3\n")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/black").symlink_to(home / ".local/pipx/venvs/black/bin/black")
    program(home / ".local/bin/script", f"#!{home}/.local/pipx/venvs/black/bin/python3\n")
    seen = show(home / ".local/bin").folders
    assert seen >= {home / ".local/bin", home / ".local/pipx/venvs/black", home / ".pyenv/versions/3.11.7"}


def test_node_brings_its_modules_and_a_lone_binary_only_itself(home: Path, show) -> None:
    node = home / ".config/nvm/versions/node/v20"
    program(node / "bin/node")
    (node / "lib/node_modules").mkdir(parents=True)
    program(home / "downloads/ripgrep/rg")
    (home / "bin").mkdir()
    (home / "bin/rg").symlink_to(home / "downloads/ripgrep/rg")
    assert show(node / "bin", home / "bin").folders == {node, node / "bin", home / "bin", home / "downloads/ripgrep/rg"}


def test_a_project_that_is_its_own_environment_does_not_show_its_secrets(home: Path, show) -> None:
    python(home / ".pyenv/versions/3.11.7")
    venv(home / "project", home / ".pyenv/versions/3.11.7/bin")
    (home / "project/.git").mkdir()
    (home / "project/.env").write_text("s3cret")
    seen = show(home / "project/bin").folders
    assert home / "project" not in seen
    assert seen >= {home / "project/bin", home / "project/pyvenv.cfg"}


@pytest.mark.parametrize("entry", ["", ".ssh", ".aws/cli/bin", "station/bin", "tools"])
def test_homes_credentials_and_the_stations_home_are_never_shown(home: Path, show, entry: str) -> None:
    program(home / entry / "x")
    (home / "tools/station").mkdir(parents=True, exist_ok=True)
    station = home / "tools/station" if entry == "tools" else home / "station"
    assert show(home / entry, station=station).folders == set()


def test_an_environment_that_holds_the_stations_home_is_not_shown_whole(home: Path, show) -> None:
    python(home / "env")
    (home / "env/state").mkdir()
    assert show(home / "env/bin", station=home / "env/state").folders == {home / "env/bin"}


def test_what_is_missing_or_in_sight_anyway_is_passed_over(home: Path, show, tmp_path: Path) -> None:
    program(tmp_path / "opt/bin/x")
    (home / "bin").mkdir()
    (home / "bin/dangling").symlink_to("nowhere")
    (home / "bin/circle").symlink_to("circle")
    seen = show(home / "gone/bin", tmp_path / "opt/bin", Path("relative"), home / "bin")
    assert seen.folders == {home / "bin"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_on_the_path_that_may_not_be_looked_at_is_passed_over(tmp_path: Path) -> None:
    """As root's folders are after a plain `su`."""
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    closed.chmod(0)
    try:
        sight = Toolchains(hidden=[tmp_path], homes=[], forbidden=[]).show_path(f"{closed / 'bin'}")
    finally:
        closed.chmod(0o700)
    assert sight.folders == set()
