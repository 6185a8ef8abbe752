"""Reads of a home go to its station, or to its files when the station is down; commands need the station."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from orchestrator.cli.output import note, visible
from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.launch import station_running
from orchestrator.reader import OfflineReader, open_reader
from orchestrator.store import StoreFailed

T = TypeVar("T")

START_S = 5.0
READ_S = 10.0
POLL_S = 0.05


def need_home(home: Home) -> None:
    """UserError when there is no home at that path."""
    if home.exists():
        return
    if home.path.exists() and not home.path.is_dir():
        raise UserError(f"{home.path} is not a folder", hint="name a station's home with --home DIR")
    hint = "`stationmaster up` or `run` makes one; --home DIR or $STATIONMASTER_HOME names another"
    raise UserError(f"there is no station's home at {home.path}", hint=hint)


def read(home: Home, question: Callable[[StationClient | OfflineReader], T]) -> T:
    """The answer of the home's station, or of its files when none runs.

    UserError too when the files are damaged.
    """
    need_home(home)
    try:
        return ask(home, question)
    except StationDown as silent:
        if station_running(home) is not None:
            note(f"warning: {visible(str(silent))}; what follows is from its files")
    try:
        return question(open_reader(home))
    except StoreFailed as failed:
        raise UserError(str(failed), hint=f"nothing was changed; the file is {home.database}") from failed


def ask(home: Home, question: Callable[[StationClient], T]) -> T:
    """The station's answer. One that holds the home's lock but does not answer yet is about to: it is waited for. StationDown when none does."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            return question(StationClient(home, patience_s=READ_S))
        except StationDown as gone:
            pid = station_running(home)
            if pid is None:
                raise
            if time.monotonic() > deadline:
                raise silent_station(home, pid) from gone
        time.sleep(POLL_S)


def silent_station(home: Home, pid: int) -> StationDown:
    """For a station that holds the home's lock and does not answer."""
    if home.read_token() is None:
        return StationDown(
            f"the station (pid {pid}) cannot be asked: {home.token} is empty or missing",
            hint=f"`kill {pid}`, then `stationmaster up{home.option()}` makes a new one; no work is lost",
        )
    return StationDown(
        f"the station (pid {pid}) of {home.path} does not answer",
        hint=f"look into {home.log}; `kill -CONT {pid}` wakes one that was stopped, `kill {pid}` ends it, no work is lost",
    )


def station(home: Home) -> StationClient:
    """For commands; a call raises StationDown when no station runs."""
    need_home(home)
    return StationClient(home)
