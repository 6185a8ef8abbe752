"""The command starts fast: its help imports nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from .conftest import Cli, environment

HEAVY = ("openai", "textual", "pydantic", "aiohttp", "starlette", "uvicorn", "uvloop", "git", "psutil")
LOADED = """
import sys
from orchestrator.cli.main import _run
sys.argv = ["stationmaster", *{args!r}]
_run()
print("LOADED", *sorted(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


def heavy_modules(cli: Cli, *args: str) -> list[str]:
    code = LOADED.format(args=args, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cli.folder, env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.strip().splitlines()[-1].split()[1:]


@pytest.mark.parametrize("args", [("--help",), ("run", "--help"), ("demo", "--help"), ("bench", "--help"), ("engine", "sim", "--help")])
def test_help_imports_nothing_heavy(cli: Cli, args: tuple[str, ...]) -> None:
    assert heavy_modules(cli, *args) == []


@pytest.mark.parametrize("command", ["list", "status", "events"])
def test_reading_a_home_without_a_station_imports_nothing_heavy(cli: Cli, command: str) -> None:
    assert heavy_modules(cli, command, "--home", str(cli.home)) == []


def test_help_comes_within_the_time_a_person_does_not_notice(cli: Cli) -> None:
    def once() -> float:
        began = time.perf_counter()
        assert cli("--help").returncode == 0
        return time.perf_counter() - began

    assert min(once() for _ in range(3)) < 0.4
