"""The HTTP server on the home's Unix socket."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Generator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

STOP_S = 3


@contextlib.contextmanager
def listening(path: Path) -> Generator[socket.socket]:
    """A socket that only its owner can connect to, gone at the end. Whoever calls holds the home's lock: a file that lies there is left over."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        mask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(mask)
        try:
            path.chmod(0o600)
            listener.listen(256)
            listener.setblocking(False)
            yield listener
        finally:
            path.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """Signals are the station's business: it stops its agents first and its server last."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class ApiServer:
    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=STOP_S)
        self._server = _Server(config)
        self._listener = listener

    async def run(self) -> None:
        """Until `close`."""
        await self._server.serve(sockets=[self._listener])

    def close(self) -> None:
        """No new connections; those that are open get `STOP_S` to end."""
        self._server.should_exit = True
