"""Plays the demo's scripts with the agents' own tools on real workspaces, without an engine and without a station."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.messages import ToolCall, ToolResult
from agents.tools.toolbox import Toolbox
from workspaces.local import LocalSandbox

DEMO = Path(__file__).parents[2] / "examples" / "demo"
TASKS: dict[str, dict[str, Any]] = {task["id"]: task for task in tomllib.loads((DEMO / "tasks.toml").read_text(encoding="utf-8"))["task"]}
FAILS_ON_PURPOSE = "closing-run-clock-change"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def script_of(task: str) -> list[dict[str, Any]]:
    return tomllib.loads((DEMO / "scripts" / f"{task}.toml").read_text(encoding="utf-8"))["step"]


def git(repo: Path, *args: str, stdin: bytes = b"") -> str:
    argv = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *args]
    return subprocess.run(argv, input=stdin, capture_output=True, check=True).stdout.decode()


@dataclass(slots=True)
class Place:
    """A tree, and the tools that work on it."""

    tree: Path
    sandbox: LocalSandbox = field(init=False)
    tools: Toolbox = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = LocalSandbox(self.tree, path=PATH)
        self.tools = Toolbox(self.tree, self.sandbox)

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        return await self.tools.call(ToolCall(id="call", name=tool, arguments=json.dumps(arguments)))

    async def sh(self, command: str) -> tuple[int | None, str]:
        done = await self.sandbox.run(command, timeout_s=60, limit_bytes=1_000_000)
        return done.exit_code, done.stdout.decode()

    async def checks(self, task: str) -> list[tuple[int | None, str]]:
        return [await self.sh(command) for command in TASKS[task]["checks"]]


@dataclass(slots=True)
class Played:
    """What became of one task. `before` and `after` are the exit codes of its checks."""

    tree: Path
    before: list[int | None] = field(default_factory=list)
    after: list[int | None] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    """Steps that expect what the tools did not say, and steps after the end."""
    slips: int = 0
    """Tool calls that failed after the first change, and edits that were refused."""
    accepted: list[bool] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    diff: bytes = b""


async def play(task: str, repo: Path, folder: Path) -> Played:
    """Clone the repository and do what the script of `task` says."""
    tree = folder / task
    await asyncio.to_thread(git, repo, "clone", "--quiet", "--shared", ".", str(tree))
    place, played, last, changed = Place(tree), Played(tree=tree), "", False
    played.before = [code for code, _ in await place.checks(task)]
    for number, step in enumerate(script_of(task), 1):
        if any(played.accepted):
            played.misfits.append(f"step {number} comes after the accepted submit")
        if (expected := step.get("expect", "")) not in last:
            played.misfits.append(f"step {number} expects {expected!r}, the last result is {last!r}")
        for call in step.get("call", []):
            result = await place.call(call["tool"], call["arguments"])
            last, ok = result.text, result.ok
            if call["tool"] == "submit":
                results = await place.checks(task)
                last, ok = "\n".join(output for _, output in results), all(code == 0 for code, _ in results)
                played.accepted.append(ok)
            played.slips += not ok and (changed or call["tool"] == "edit")
            changed = changed or call["tool"] in ("edit", "write")
    played.after = [code for code, _ in await place.checks(task)]
    git(tree, "add", "--all")
    played.files = git(tree, "diff", "--cached", "--name-only").split()
    played.diff = git(tree, "diff", "--cached", "--binary").encode()
    return played


async def play_all(repo: Path, folder: Path) -> dict[str, Played]:
    """All tasks, a few at a time, in the order of the task file."""
    some = asyncio.Semaphore(4)

    async def one(task: str) -> Played:
        async with some:
            return await play(task, repo, folder)

    async with asyncio.TaskGroup() as group:
        plays = {task: group.create_task(one(task)) for task in TASKS}
    return {task: done.result() for task, done in plays.items()}
