"""Starts the dashboard, which is a process of its own: it may die, and the agents go on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import orchestrator
from orchestrator.cli.output import note
from orchestrator.client import StationClient
from orchestrator.errors import UserError
from orchestrator.home import Home

LEAVE_S = 5.0


def open_dashboard(home: Home, *, task: str | None = None, stays: bool = True) -> int:
    """Show the dashboard until the person quits it; then say how to come back, unless the station does not stay. Its exit status.

    UserError when stdin or stdout is not a terminal, StationDown when there is no station to show.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the dashboard needs a terminal", hint="`stationmaster status`, `list` and `events --follow` work without one")
    StationClient(home).status()
    argv = [sys.executable, "-m", "tui", "--home", str(home.path)]
    if task is not None:
        argv += ["--task", task]
    # Ctrl-C belongs to the dashboard while it is on the screen.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # From the folder that holds our packages: a folder `agents/` where the person stands must not shadow ours.
        packages = Path(orchestrator.__file__).parent.parent
        code = _until_it_ends(subprocess.Popen(argv, cwd=packages, preexec_fn=_obey_interrupts))
    finally:
        signal.signal(signal.SIGINT, before)
    if stays and code == 0:
        say_how_to_come_back(home)
    return code


def _until_it_ends(process: subprocess.Popen[bytes]) -> int:
    """Its exit status. When we are stopped ourselves it is asked to leave first, so that it gives the terminal back."""
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        try:
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def _obey_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def say_how_to_come_back(home: Home) -> None:
    where = home.option()
    note(f"the agents go on; `stationmaster tui{where}` brings the dashboard back, `stationmaster down{where}` stops the station")
