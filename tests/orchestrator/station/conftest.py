"""A home, a repository and scripts for the simulated engine: what the tests of a whole station need."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client import StationClient
from orchestrator.events import Event, StateChanged
from orchestrator.home import Home
from orchestrator.launch import StationOptions, spawn_station, station_running, stop_station
from orchestrator.task import State, TaskSpec
from orchestrator.views import TaskRow

FAST = """
name = "fast"
decode_step_ms = [[1, 0.5], [256, 4.0]]
prefill_tokens_per_s = 2000000.0
"""
SLOW = """
name = "slow"
decode_step_ms = [[1, 20.0]]
prefill_tokens_per_s = 2000000.0
"""


class Yard:
    def __init__(self, folder: Path) -> None:
        self.home = Home.at(folder / "home")
        self.repo = folder / "repo"
        self.scripts = folder / "scripts"
        self.client = StationClient(self.home)
        self.scripts.mkdir()
        self.repo.mkdir()
        (self.repo / "a.txt").write_text("one\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        self._profiles = {"fast": folder / "fast.toml", "slow": folder / "slow.toml"}
        self._profiles["fast"].write_text(FAST)
        self._profiles["slow"].write_text(SLOW)

    @staticmethod
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        """A script's step with one tool call."""
        return {"text": f"I call {tool}.", "call": [{"tool": tool, "arguments": arguments}]}

    @classmethod
    def submit(cls, summary: str = "done") -> dict[str, Any]:
        return cls.call("submit", summary=summary)

    def git(self, *args: str, git_dir: Path | None = None) -> str:
        where = ["--git-dir", str(git_dir)] if git_dir else ["-C", str(self.repo)]
        argv = ["git", *where, "-c", "user.name=t", "-c", "user.email=t@example.org", *args]
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout.strip()

    def spec(self, task: str, **changes: Any) -> TaskSpec:
        given = {"title": task, "prompt": "Do it.", "repo": str(self.repo), "base_commit": self.git("rev-parse", "HEAD")}
        return TaskSpec(**{"id": task, "target_branch": "main", "sandbox": "none", **given, **changes})

    def script(self, task: str, *steps: dict[str, Any]) -> None:
        """What the simulated model says for a task. Call it before `up`: the engine reads its scripts once."""
        lines = [f"task = {json.dumps(task)}"]
        for step in steps:
            lines.append("[[step]]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in step.items() if name != "call"]
            for each in step.get("call", ()):
                inner = ", ".join(f"{name} = {json.dumps(value)}" for name, value in each["arguments"].items())
                lines += ["[[step.call]]", f"tool = {json.dumps(each['tool'])}", f"arguments = {{ {inner} }}"]
        (self.scripts / f"{task}.toml").write_text("\n".join(lines) + "\n")

    def up(self, profile: str = "fast", **options: Any) -> int:
        """Start a station with the simulated engine; its pid."""
        given = {"endpoint": "sim", "sim_script": str(self.scripts), "sim_profile": str(self._profiles[profile]), "agents": 8}
        return spawn_station(self.home, StationOptions(**{**given, **options}))

    def up_again(self) -> int:
        return spawn_station(self.home, StationOptions())

    def down(self) -> None:
        stop_station(self.home)

    def kill(self) -> None:
        """kill -9, and wait until the lock is free."""
        pid = station_running(self.home)
        assert pid
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def close(self) -> None:
        """No station is left, whatever state the test has left it in."""
        if station_running(self.home):
            self.kill()

    def row(self, task: str) -> TaskRow:
        return self.client.task(task).row

    def wait_for(self, wanted: Callable[[Event], bool], *, task: str | None = None, after: int = 0) -> Event:
        """The first event, past or to come, that is wanted."""
        for event in self.client.events(after, task=task, follow=True):
            if wanted(event):
                return event
        raise AssertionError("the stream ended")

    def wait_state(self, task: str, *states: State, after: int = 0) -> TaskRow:
        """Until the task enters one of the states; its row then."""
        self.wait_for(lambda event: isinstance(event.fact, StateChanged) and event.fact.new in states, task=task, after=after)
        return self.row(task)

    def wait_all(self, tasks: Sequence[str], *states: State) -> list[TaskRow]:
        return [self.wait_state(task, *states) for task in tasks]

    def seq(self) -> int:
        return self.client.snapshot().seq


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """A stream of events that never brings what a test waits for ends the test, not the patience."""

    def over(*_: object) -> None:
        raise TimeoutError("the test took 45 s")

    signal.signal(signal.SIGALRM, over)
    signal.alarm(45)
    yield
    signal.alarm(0)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """No station runs yet: write the scripts, then `up`."""
    made = Yard(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A station whose engine does not answer: tasks wait. Shared by a module's tests."""
    made = Yard(tmp_path_factory.mktemp("idle"))
    made.up(endpoint="http://127.0.0.1:9/v1")
    try:
        yield made
    finally:
        made.close()
