"""Starts the simulated engine: `stationmaster engine sim` and `python -m orchestrator.serving.simulator`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

FAULTS: Mapping[str, str] = {}
"""What `--fault` takes: the name as it is written (with its value) and what it does."""


def serve(
    *,
    host: str = "127.0.0.1",
    port: int,
    profile: str | None,
    script_dir: Path | None,
    faults: Sequence[str],
    seed: int,
    parent_pipe: bool,
) -> None:
    """Runs the engine until SIGTERM, SIGINT or, with `parent_pipe`, the end of standard input. Blocks.

    Prints `ready http://HOST:PORT` to stderr once it listens. Port 0 takes a free one. `profile` is the name of a preset or a file
    (None: `demo`).

    Raises UserError: port in use, unknown preset, faulty profile, script or fault.
    """
    raise NotImplementedError
