"""Plays the demo's scripts on real workspaces, without an engine: edits are made and commands run, exactly as the scripts propose them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEMO = Path(__file__).parents[2] / "examples" / "demo"
TASKS: dict[str, dict[str, Any]] = {task["id"]: task for task in tomllib.loads((DEMO / "tasks.toml").read_text())["task"]}
FAILS_ON_PURPOSE = "closing-run-clock-change"


def script_of(task: str) -> list[dict[str, Any]]:
    return tomllib.loads((DEMO / "scripts" / f"{task}.toml").read_text())["step"]


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """With next to no environment, as in a sandbox: PATH, and a HOME that is not there."""
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": "/nonexistent"}
    return subprocess.run(
        ["sh", "-c", command],
        cwd=cwd,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )


def git(repo: Path, *args: str, stdin: str = "") -> str:
    argv = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *args]
    return subprocess.run(argv, input=stdin, text=True, capture_output=True, check=True).stdout


def checks(task: str, tree: Path) -> list[subprocess.CompletedProcess[str]]:
    return [shell(command, tree) for command in TASKS[task]["checks"]]


@dataclass(slots=True)
class Played:
    """What became of one task."""

    tree: Path
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    """Steps that expect what the tools did not say, and steps after the end."""
    slips: int = 0
    """Tool calls that were refused, and commands that failed after the first change."""
    accepted: list[bool] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    diff: str = ""


class Refused(Exception):
    """A tool does not do what it was asked."""


class Tools:
    """The effects of an agent's tools; of their words only what no wording can change."""

    def __init__(self, task: str, tree: Path) -> None:
        self.task = task
        self.tree = tree
        self.changed = False
        self.ok = True

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        self.ok = True
        try:
            return getattr(self, f"_{tool}")(**arguments)
        except Refused as reason:
            self.ok = False
            return f"{tool}: {reason}"

    def _file(self, path: str) -> Path:
        if not (self.tree / path).is_file():
            raise Refused("no such file")
        return self.tree / path

    def _read(self, path: str) -> str:
        return self._file(path).read_text()

    def _list(self, path: str = ".") -> str:
        return "\n".join(sorted(entry.name for entry in (self.tree / path).iterdir()))

    def _search(self, pattern: str, path: str = ".") -> str:
        where = self.tree / path
        files = [where] if where.is_file() else sorted(where.rglob("*.py"))
        return "\n".join(line for file in files for line in file.read_text().splitlines() if re.search(pattern, line))

    def _edit(self, path: str, old: str, new: str) -> str:
        text = self._file(path).read_text()
        if text.count(old) != 1:
            raise Refused(f"{text.count(old)} matches")
        self._file(path).write_text(text.replace(old, new))
        self.changed = True
        return "edited"

    def _write(self, path: str, content: str) -> str:
        (self.tree / path).write_text(content)
        self.changed = True
        return "written"

    def _run(self, command: str) -> str:
        done = shell(command, self.tree)
        self.ok = done.returncode == 0 or not self.changed
        return done.stdout

    def _note(self, text: str) -> str:
        return "noted"

    def _submit(self, summary: str) -> str:
        results = checks(self.task, self.tree)
        self.ok = all(done.returncode == 0 for done in results)
        return "\n".join(done.stdout for done in results)


def play(task: str, repo: Path, folder: Path) -> Played:
    """Clone the repository and do what the script of `task` says."""
    tree = folder / task
    git(repo, "clone", "--quiet", "--shared", ".", str(tree))
    played = Played(tree=tree, before=[done.returncode for done in checks(task, tree)])
    tools, last = Tools(task, tree), ""
    for number, step in enumerate(script_of(task), 1):
        if any(played.accepted):
            played.misfits.append(f"step {number} comes after the accepted submit")
        if (expected := step.get("expect", "")) not in last:
            played.misfits.append(f"step {number} expects {expected!r}, the last result is {last!r}")
        for call in step.get("call", []):
            last = tools.call(call["tool"], call.get("arguments", {}))
            played.slips += not tools.ok
            if call["tool"] == "submit":
                played.accepted.append(tools.ok)
    played.after = [done.returncode for done in checks(task, tree)]
    git(tree, "add", "--all")
    played.files = git(tree, "diff", "--cached", "--name-only").split()
    played.diff = git(tree, "diff", "--cached", "--binary")
    return played
