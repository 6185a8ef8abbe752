"""`up`, `down`, `status` and `tui`."""

from __future__ import annotations

import time

import click

from orchestrator.cli.options import station_options, with_engine, with_home, with_json
from orchestrator.cli.output import count, note, one_line, paint, print_json, rate, say, visible
from orchestrator.cli.reading import POLL_S, ask, need_home, read
from orchestrator.client import StationClient
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.launch import StationOptions, spawn_station, station_running, stop_station
from orchestrator.reader import open_reader
from orchestrator.version import version
from orchestrator.views import EngineView, StatusDocument

ENGINE_S = 4.0


@click.command()
@with_engine
@click.option("--foreground", is_flag=True, help="Stay, with the log on the terminal; Ctrl-C stops the station.")
@with_json
@with_home
def up(
    home: Home,
    as_json: bool,
    foreground: bool,
    endpoint: str | None,
    engine: str | None,
    model: str | None,
    api_key_env: str | None,
    agents: int | None,
) -> int:
    """Start the station, detached, and wait until it answers. What is not said stays as it was at the last start.

    \b
    Example:  stationmaster up --endpoint http://127.0.0.1:8000/v1 --agents 32
    """
    options = station_options(endpoint=endpoint, engine=engine, model=model, api_key_env=api_key_env, agents=agents)
    if foreground:
        from orchestrator.station import main

        return main(home, options)
    started = start(home, options)
    document = _once_the_engine_was_asked(StationClient(home))
    if document.engine is None:
        note("no engine is named yet, so tasks will wait; `stationmaster down`, then `up --endpoint URL`")
    elif not document.engine.healthy and not document.engine.child:
        note(f"the engine {one_line(document.engine.message)}; tasks wait until it can be used")
    if as_json:
        print_json(document)
    else:
        say(f"the station of {visible(str(home.path))} {'is up' if started else 'was up already'}, pid {document.pid}")
    return 0


def _once_the_engine_was_asked(client: StationClient) -> StatusDocument:
    """The status, as soon as it says whether the engine answers; it is not waited for for long."""
    deadline = time.monotonic() + ENGINE_S
    while True:
        document = client.status()
        told = document.engine
        if told is None or told.child or told.message != "starting" or time.monotonic() > deadline:
            return document
        time.sleep(POLL_S)


def start(home: Home, options: StationOptions) -> bool:
    """Start a station unless one runs that fits `options`. True when it was started here.

    UserError when the running one works with another endpoint, model or key.
    """
    if station_running(home) is None:
        try:
            spawn_station(home, options)
        except UserError:
            # Somebody else may have been faster.
            if station_running(home) is None:
                raise
        else:
            return True
    status = ask(home, lambda client: client.status())
    if options.endpoint is not None and not _same_engine(options.endpoint, status.engine):
        raise UserError(
            f"the station (pid {status.pid}) already runs with another endpoint: {_engine_name(status.engine)}",
            hint=f"`stationmaster down{home.option()}` first, or choose another --home",
        )
    _need_same_model(home, options, status)
    if options.agents is not None and options.agents != status.agents:
        note(f"the station runs already, with {status.agents} agents; --agents {options.agents} takes effect after `stationmaster down`")
    return False


def _need_same_model(home: Home, options: StationOptions, status: StatusDocument) -> None:
    settings = open_reader(home).settings()
    hint = f"`stationmaster down{home.option()}` first, or choose another --home"
    in_use = {settings.model, status.engine.model if status.engine else None}
    if options.model is not None and options.model not in in_use:
        raise UserError(
            f"the station (pid {status.pid}) already runs with another model: {settings.model or 'the first that its endpoint lists'}",
            hint=hint,
        )
    if options.api_key_env is not None and options.api_key_env != settings.api_key_env:
        taken = f"the key in {settings.api_key_env}" if settings.api_key_env else "no key"
        raise UserError(f"the station (pid {status.pid}) already runs with {taken}", hint=hint)


def _same_engine(endpoint: str, told: EngineView | None) -> bool:
    if told is None:
        return False
    if endpoint == "sim":
        return told.child
    return endpoint == told.url  # both in the spelling of `config.endpoint_url`


def _engine_name(told: EngineView | None) -> str:
    if told is None:
        return "none"
    return "its own simulated engine" if told.child else told.url


@click.command()
@with_json
@with_home
def down(home: Home, as_json: bool) -> None:
    """Stop the station and wait until it has. Tasks at work are interrupted and go on at the next `up`.

    \b
    Example:  stationmaster down
    """
    stopped = stop_station(home)
    if as_json:
        print_json({"stopped": stopped})
    else:
        say(f"the station of {visible(str(home.path))} {'has stopped' if stopped else 'was not running'}")


@click.command()
@with_json
@with_home
def status(home: Home, as_json: bool) -> None:
    """Whether the station runs, how full the queue is, and what the engine says.

    \b
    Example:  stationmaster status --json
    """
    document = _status(home)
    if as_json:
        print_json(document)
        return
    for line in _status_lines(document, home):
        say(line)


def _status(home: Home) -> StatusDocument:
    if home.exists():
        return read(home, lambda reader: reader.status())
    return StatusDocument(running=False, pid=None, socket=None, version=version(), agents=0, queue={}, engine=None, home=str(home.path))


def _status_lines(document: StatusDocument, home: Home) -> list[str]:
    where = visible(str(home.path))
    if document.running:
        lines = [
            f"{paint('running', 'green') if document.socket else paint('not answering', 'red')}  pid {document.pid}, version {document.version}, up to {document.agents} agents, home {where}"
        ]
    elif not home.exists():
        lines = [f"{paint('down', 'yellow')}  no station has run in {where} yet"]
    else:
        lines = [f"{paint('down', 'yellow')}  home {where}; `stationmaster up{home.option()}` starts it"]
    if document.warning:
        lines.append(paint(f"warning  {one_line(document.warning)}", "yellow"))
    tasks = ", ".join(f"{number} {state}" for state, number in document.queue.items() if number)
    lines.append(f"tasks    {tasks or 'none'}")
    if document.engine:
        lines.append(_engine_line(document.engine))
    if document.totals:
        totals = document.totals
        lines.append(
            f"tokens   {count(totals.input_tokens)} in, {count(totals.output_tokens)} out, now {rate(totals.tokens_per_s)} tokens/s"
        )
    return lines


def _engine_line(told: EngineView) -> str:
    kind = "simulated engine, " if told.simulated else ""
    running = "—" if told.running is None else told.running
    waiting = "—" if told.waiting is None else told.waiting
    return f"engine   {kind}{one_line(told.url)}, {one_line(told.model or 'unknown model')}: {one_line(told.message)}, {running} running, {waiting} waiting"


@click.command()
@with_home
def tui(home: Home) -> int:
    """Open the dashboard. Quitting it leaves the agents at work.

    \b
    Example:  stationmaster tui
    """
    from orchestrator.cli.dashboard import open_dashboard

    need_home(home)
    return open_dashboard(home)
