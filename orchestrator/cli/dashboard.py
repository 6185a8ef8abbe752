"""Starts the dashboard, which is a process of its own: it may die, and the agents go on."""

from __future__ import annotations

import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import orchestrator
from orchestrator.cli.output import fail, note
from orchestrator.client import StationClient
from orchestrator.errors import UserError
from orchestrator.home import Home

LEAVE_S = 5.0
# What the dashboard switches on in a terminal, switched off again: mouse, focus reports, pasting in brackets, reports of the size, its
# keyboard protocol, colours, the other screen; and wrapping and the cursor back on.
_AS_IT_WAS = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?2026l\x1b[<u\x1b[0m\x1b[?1049l\x1b[?7h\x1b[?25h"


def open_dashboard(home: Home, *, task: str | None = None, stays: bool = True) -> int:
    """Show the dashboard until the person quits it; then say how to come back, unless the station does not stay.

    Its exit status; 1 when a signal ended it.

    UserError when stdin or stdout is not a terminal, StationDown when there is no station to show.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the dashboard needs a terminal", hint="`stationmaster status`, `list` and `events --follow` work without one")
    StationClient(home).status()
    argv = [sys.executable, "-m", "tui", "--home", str(home.path)]
    if task is not None:
        argv += ["--task", task]
    if not stays:
        argv.append("--ends-station")
    terminal = termios.tcgetattr(sys.stdin)
    # Ctrl-C belongs to the dashboard while it is on the screen.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # From the folder that holds our packages: a folder `agents/` where the person stands must not shadow ours.
        packages = Path(orchestrator.__file__).parent.parent
        code = _until_it_ends(subprocess.Popen(argv, cwd=packages, preexec_fn=_obey_interrupts), terminal)
    finally:
        signal.signal(signal.SIGINT, before)
    if code < 0:
        fail(f"the dashboard was ended by {signal.Signals(-code).name}")
    if stays and code <= 0:
        say_how_to_come_back(home)
    return 1 if code < 0 else code


def _until_it_ends(process: subprocess.Popen[bytes], terminal: list[Any]) -> int:
    """Its exit status. When we are stopped ourselves it is asked to leave first.

    It gives the terminal back by itself; when it was killed that is done here, with `terminal` as the settings from before.
    """
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
    finally:
        if process.returncode is not None and process.returncode < 0:
            sys.stdout.write(_AS_IT_WAS)
            sys.stdout.flush()
            # Flushed too: what the mouse has sent meanwhile is no input for the shell.
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, terminal)


def _obey_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def say_how_to_come_back(home: Home) -> None:
    where = home.option()
    note(f"the agents go on; `stationmaster tui{where}` brings the dashboard back, `stationmaster down{where}` stops the station")
