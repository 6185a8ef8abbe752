"""`python -m tui --home DIR [--task ID]`: the dashboard of a station that runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import UserError
from tui.client import Station, open_station


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 after a person left, 1 when there is no station to show."""
    parser = argparse.ArgumentParser(prog="python -m tui", description="The dashboard of a running station.")
    parser.add_argument(
        "--home", type=Path, help="state directory of the station (default: $STATIONMASTER_HOME, else the XDG state directory)"
    )
    parser.add_argument("--task", metavar="ID", help="begin at this task")
    parser.add_argument("--ascii", action="store_true", default=None, help="use ASCII marks only (default: by the locale)")
    parser.add_argument("--ends-station", action="store_true", help="who leaves is asked first: the station ends with the dashboard")
    given = parser.parse_args(arguments)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _no("the dashboard needs a terminal", "`stationmaster status` and `stationmaster list` print the same as text")
    station = open_station(given.home)
    try:
        station.snapshot()
    except UserError as down:
        return _no(str(down), down.hint)
    return _run(station, given.task, ascii_only=given.ascii, ends_station=given.ends_station)


def _run(station: Station, task: str | None, *, ascii_only: bool | None, ends_station: bool) -> int:
    from tui.app import Dashboard

    if not sys.stderr.isatty():
        # Textual draws on stderr; a person who sent that elsewhere (2>log) still wants to see the dashboard.
        os.dup2(sys.stdout.fileno(), 2)
    app = Dashboard(station, task=task, ascii_only=ascii_only, ends_station=ends_station)
    app.run()
    return app.return_code or 0


def _no(message: str, hint: str) -> int:
    print(f"error: {message}" + (f"\n\nhint: {hint}" if hint else ""), file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
