"""The station's process: `python -m orchestrator.station --home DIR [options]`.

`up --foreground` calls `main(home, options)`; `up`, `run` and `demo` start this module detached (see `orchestrator.launch.spawn_station`).
"""

from __future__ import annotations

from orchestrator.home import Home
from orchestrator.launch import StationOptions


def main(home: Home, options: StationOptions) -> int:
    """Run a station in the foreground until SIGTERM, SIGINT or `POST /v1/stop`. The exit status (0, or 1 after a fatal error).

    UserError when another station holds this home's lock.
    """
    raise NotImplementedError
