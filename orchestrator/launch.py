"""Starts and stops a station from outside: what `up`, `run`, `demo` and `down` do. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

import msgspec

from orchestrator.home import Home


class StationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a station works. None leaves what an earlier start of this home set (see `DEFAULTS` for a home's first start).

    `endpoint` is the base URL of an OpenAI-compatible server (as in `http://host:8000/v1`), or 'sim' for the simulated engine as a child.
    """

    endpoint: str | None = None
    model: str | None = None
    """The model's name at the endpoint; None or '' takes the first that it lists."""
    api_key_env: str | None = None
    """The environment variable that holds the endpoint's key; the key itself is never stored."""
    agents: int | None = None
    sim_script: str | None = None
    """Folder of scripts for the simulated engine."""
    sim_profile: str | None = None
    """A preset's name or a profile file."""
    sim_seed: int | None = None


def spawn_station(home: Home, options: StationOptions, *, wait_s: float = 20.0) -> int:
    """Start a station, detached (own session, output into the home's log), and wait until it answers. Its pid.

    Raises UserError when one is running already (naming its pid), or when it does not come up (with the log's tail).
    """
    raise NotImplementedError


def station_running(home: Home) -> int | None:
    """The pid of the station that holds this home's lock; None when none does."""
    raise NotImplementedError


def stop_station(home: Home, *, wait_s: float = 15.0) -> bool:
    """Ask the station to stop and wait until it has. False when none was running. UserError when it does not stop in time."""
    raise NotImplementedError


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of the station's log; '' when there is none."""
    raise NotImplementedError
