"""A user's repository, its hub, and workspaces of it: real git in a folder of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from workspaces.hub import Hub, open_hub, resolve_base
from workspaces.workspace import Workspace, create_workspace


@dataclass
class Repo:
    """A repository as its user sees it."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": f"{self.path.parent}", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", **self.env}
        done = subprocess.run(["git", *args], cwd=cwd or self.path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout.strip()

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def commit(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@dataclass
class Station:
    """What a station does with one repository."""

    repo: Repo
    home: Path
    hub: Hub
    base: str

    async def workspace(self, task: str = "task", attempt: int = 1, base: str | None = None) -> Workspace:
        return await create_workspace(self.hub, root=self.home / "workspaces", task=task, attempt=attempt, base_commit=base or self.base)

    def show(self, commit: str, path: str) -> bytes:
        return subprocess.run(["git", "show", f"{commit}:{path}"], cwd=self.hub.path, check=True, capture_output=True).stdout

    def names(self, commit: str) -> set[str]:
        out = subprocess.run(
            ["git", "ls-tree", "-r", "-z", "--name-only", commit], cwd=self.hub.path, check=True, capture_output=True
        ).stdout
        return {os.fsdecode(name) for name in out.split(b"\0") if name}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user of a test has an empty home, and git no identity but what the test gives it."""
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", f"{home}")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def make_repo(own_home: Path) -> Callable[[str], Repo]:
    def make(name: str) -> Repo:
        path = own_home / name
        path.mkdir()
        repo = Repo(path)
        repo.git("init", "-q", "-b", "main")
        repo.git("config", "user.name", "Ursula User")
        repo.git("config", "user.email", "ursula@example.org")
        return repo

    return make


@pytest.fixture
def repo(make_repo: Callable[[str], Repo]) -> Repo:
    """Three files and one commit on `main`."""
    repo = make_repo("project")
    repo.put("readme.txt", "hello\n")
    repo.put("pkg/a.py", "a = 1\n")
    repo.put("pkg/b.py", "b = 2\n")
    repo.commit("first")
    return repo


@pytest.fixture
def open_station(tmp_path: Path) -> Callable[[Repo], object]:
    async def open_one(repo: Repo) -> Station:
        base = await resolve_base(repo.path, None)
        home = tmp_path / "station"
        hub = await open_hub(base.repo, hubs=home / "hubs", commit=base.commit)
        return Station(repo=repo, home=home, hub=hub, base=base.commit)

    return open_one


@pytest.fixture
async def station(repo: Repo, open_station) -> Station:
    return await open_station(repo)


@pytest.fixture
def stuck_git(tmp_path: Path) -> Callable[[str], AbstractContextManager[None]]:
    """For a while, git never comes back from one of its commands."""

    @contextmanager
    def stuck(command: str) -> Iterator[None]:
        fake = tmp_path / "stuck" / "git"
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f'#!/bin/sh\n[ "$1" = {command} ] && exec sleep 600\nPATH="{os.environ["PATH"]}" exec git "$@"\n')
        fake.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
            yield

    return stuck
