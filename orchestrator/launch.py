"""Starts and stops a station from outside: what `up`, `run`, `demo` and `down` do. Imports nothing heavy."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home

POLL_S = 0.05


class StationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a station works. None leaves what an earlier start of this home set (see `orchestrator.config.Settings` for a first start).

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
    home.ensure()
    holder = station_running(home)
    if holder is not None:
        raise already_running(home, holder)
    told = msgspec.json.encode(_absolute(options)).decode()
    argv = [sys.executable, "-m", "orchestrator.station", "--home", str(home.path), "--options", told]
    before = _size(home.log)
    with home.log.open("ab") as log:
        # From the folder that holds our packages, never the caller's: a folder `agents/` in there must not shadow ours.
        child = subprocess.Popen(
            argv, cwd=Path(__file__).parent.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        if _comes_up(child, home, before, wait_s):
            return child.pid
    except BaseException:
        # Ctrl-C while it starts: nobody would know of it.
        child.kill()
        child.wait()
        raise
    child.kill()
    child.wait()
    raise UserError(f"the station did not answer within {wait_s:.0f} s: {_since(home.log, before)}", hint=f"the log is {home.log}")


def _absolute(options: StationOptions) -> StationOptions:
    """The station works in another folder than the caller: paths must not depend on it."""
    script, profile = options.sim_script, options.sim_profile
    if script:
        options = msgspec.structs.replace(options, sim_script=str(Path(script).absolute()))
    if profile and Path(profile).is_file():
        options = msgspec.structs.replace(options, sim_profile=str(Path(profile).absolute()))
    return options


def _comes_up(child: subprocess.Popen[bytes], home: Home, before: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    client = StationClient(home)
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            raise _early_end(home, code, _since(home.log, before))
        if _answers(client, child.pid):
            child.returncode = 0  # it lives on by itself: the handle need not warn of that
            return True
        time.sleep(POLL_S)
    return False


def _early_end(home: Home, code: int, said: str) -> UserError:
    """Its own words when it refused to start, else that it ended, with what it wrote."""
    error, _, hint = said.rpartition("error: ")[2].partition("\n\nhint: ")
    if code == 2:
        return UserError(error.strip(), hint=hint.strip())
    return UserError(f"the station ended at once (exit {code}): {said}", hint=f"the log is {home.log}")


def _answers(client: StationClient, pid: int) -> bool:
    try:
        return client.status().pid == pid
    except StationDown:
        return False


def already_running(home: Home, pid: int) -> UserError:
    return UserError(
        f"a station is running already for {home.path} (pid {pid})", hint="`stationmaster status` shows it, `stationmaster down` stops it"
    )


def station_running(home: Home) -> int | None:
    """The pid of the station that holds this home's lock; None when none does. 0 when it holds the lock but has not yet written its pid."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 32).decode(errors="replace").strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)


@contextmanager
def hold_lock(home: Home, *, wait_s: float = 1.0) -> Generator[None]:
    """Be the one station of this home. UserError naming the holder's pid when there is another.

    Waits a moment first: `station_running` of some client may hold the lock shared for an instant.
    """
    descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait_s
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise already_running(home, station_running(home) or 0)
            time.sleep(POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop_station(home: Home, *, wait_s: float = 15.0) -> bool:
    """Ask the station to stop and wait until it has. False when none was running. UserError when it does not stop in time."""
    pid = station_running(home)
    if pid is None:
        return False
    try:
        StationClient(home).stop()
    except StationDown as silent:
        raise UserError(
            f"the station (pid {pid}) does not answer", hint=f"look into {home.log}; `kill {pid}` ends it, no work is lost"
        ) from silent
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if station_running(home) is None:
            return True
        time.sleep(POLL_S)
    raise UserError(
        f"the station (pid {pid}) is still stopping after {wait_s:.0f} s",
        hint=f"look into {home.log}; `kill -9 {pid}` ends it, no work is lost",
    )


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _since(log: Path, offset: int) -> str:
    try:
        with log.open("rb") as text:
            text.seek(offset)
            return text.read()[-4_000:].decode(errors="replace").strip() or "it wrote nothing"
    except OSError as failed:
        return f"its log cannot be read ({failed.strerror})"
