"""The real command, as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import orchestrator

PACKAGES = Path(orchestrator.__file__).parent.parent
COMMAND = [sys.executable, "-m", "orchestrator.cli"]


def environment(**changed: str) -> dict[str, str]:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "STATIONMASTER_", "PYTEST_")) and name != "NO_COLOR"
    }
    return env | {"PYTHONPATH": str(PACKAGES), "COLUMNS": "100"} | changed


@dataclass(frozen=True)
class Cli:
    """`stationmaster … --home HOME`, from an empty folder."""

    home: Path
    folder: Path

    def __call__(self, *args: str | Path, timeout_s: float = 60, home: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [*COMMAND, *map(str, args)]
        if home and "--help" not in argv:
            argv += ["--home", str(self.home)]
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def json(self, *args: str | Path, exits: int = 0, timeout_s: float = 60) -> Any:
        done = self(*args, "--json", timeout_s=timeout_s)
        assert done.returncode == exits, f"exit {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Cli(home=tmp_path / "home", folder=folder)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit on `main`."""
    path = tmp_path / "repo"
    path.mkdir()
    (path / "a.txt").write_text("one\n")
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "base")
    return path


def git(path: Path, *args: str, ok: tuple[int, ...] = (0,)) -> str:
    env = environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", "-C", str(path), *identity, *args], env=env, check=False, capture_output=True, text=True)
    assert done.returncode in ok, done.stderr
    return done.stdout.strip()


@pytest.fixture
def task_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "tasks.toml"
        path.write_text(text)
        return path

    return write
