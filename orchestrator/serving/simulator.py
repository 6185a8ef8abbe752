"""Starts the simulated engine: `stationmaster engine sim` and `python -m orchestrator.serving.simulator`."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import UserError
from orchestrator.serving.sim.faults import FAULTS, Faults, parse_faults
from orchestrator.serving.sim.profile import load_profile, preset_names
from orchestrator.serving.sim.script import load_scripts

if TYPE_CHECKING:
    import uvicorn

__all__ = ["FAULTS", "preset_names", "serve"]

KEEP_ALIVE_S = 75
"""Longer than a client's pool keeps an idle connection, so that it is not the server who closes one in use."""


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
    loaded, scripts, parsed = load_profile(profile), load_scripts(script_dir), parse_faults(faults)

    import uvicorn
    import uvloop

    from orchestrator.serving.sim.server import SimulatedEngine

    engine = SimulatedEngine(loaded, scripts=scripts, faults=Faults(parsed, seed=seed), seed=seed)
    config = uvicorn.Config(
        engine.application(),
        loop="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        headers=[("server", "stationmaster-simulated-engine")],
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with _listening(host, port) as listener:
        uvloop.run(_run(server, listener, parent_pipe=parent_pipe))


async def _run(server: uvicorn.Server, listener: socket.socket, *, parent_pipe: bool) -> None:
    if parent_pipe:
        threading.Thread(target=_end_with_parent, args=(server, asyncio.get_running_loop()), daemon=True).start()
    host, port = listener.getsockname()[:2]
    # The socket listens already: a connection made from now on waits in its backlog until the server takes it.
    sys.stderr.write(f"ready http://{f'[{host}]' if ':' in host else host}:{port}\n")
    sys.stderr.flush()
    await server.serve(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except (OSError, OverflowError) as refused:
        listener.close()
        raise UserError(f"cannot listen on {host}:{port}: {refused}", hint="another --port, or 0 for a free one") from refused
    return listener


def _end_with_parent(server: uvicorn.Server, loop: asyncio.AbstractEventLoop) -> None:
    """Waits for the end of standard input, whose other end the parent holds: a killed parent leaves no engine behind."""
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(setattr, server, "should_exit", True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m orchestrator.serving.simulator", description="A simulated vLLM: no model, real timing."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--profile", help=f"a preset ({', '.join(preset_names())}) or a file")
    parser.add_argument("--script", type=Path, help="a folder of scripts")
    parser.add_argument("--fault", action="append", default=[], help="NAME[=VALUE], again for more")
    parser.add_argument("--list-faults", action="store_true", help="say what --fault takes, and end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parent-pipe", action="store_true", help="end when standard input ends")
    args = parser.parse_args(argv)
    if args.list_faults:
        sys.stdout.writelines(f"{name:22} {what}\n" for name, what in FAULTS.items())
        return 0
    try:
        serve(
            host=args.host,
            port=args.port,
            profile=args.profile,
            script_dir=args.script,
            faults=args.fault,
            seed=args.seed,
            parent_pipe=args.parent_pipe,
        )
    except UserError as refused:
        sys.stderr.write(f"error: {refused}\n\nhint: {refused.hint}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
