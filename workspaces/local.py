"""Commands without isolation: for `--sandbox none`, and for macOS.

Covers: a process group of its own, no terminal, an environment without secrets, a HOME and TMPDIR of its own, the end of every descendant
that still carries the command's token in its environment.
Does not cover: anything else. The command may read and write whatever the user may.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from workspaces.clone import remove_tree
from workspaces.environment import command_environment
from workspaces.errors import SandboxUnavailable
from workspaces.process import Completed, run_process
from workspaces.sandbox import SandboxKind

TOKEN = "STATIONMASTER_COMMAND"  # noqa: S105  a name, no secret
ROUNDS = 5
"""How often to look for descendants: one may have been about to start another."""


class LocalSandbox:
    kind: SandboxKind = "none"

    def __init__(self, workspace: Path, *, path: str) -> None:
        self._workspace = workspace
        self._path = path

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        """As `Sandbox.run`."""
        token = secrets.token_hex(16)
        place = tempfile.mkdtemp(prefix="stationmaster-")
        environment = command_environment(path=self._path, home=Path(place), temporary=Path(place)) | {TOKEN: token}
        try:
            return await run_process(
                ["/bin/sh", "-c", command],
                cwd=self._workspace,
                env=environment,
                timeout_s=timeout_s,
                limit_bytes=limit_bytes,
                merge_output=True,
            )
        except OSError as error:
            raise SandboxUnavailable(f"no command can be started in {self._workspace}: {error}") from error
        finally:
            # Not cancelled with the command: its end is what this is about.
            await asyncio.shield(asyncio.to_thread(_clean_up, token, place))


def _clean_up(token: str, place: str) -> None:
    _sweep(token)
    remove_tree(Path(place))


def _sweep(token: str) -> None:
    """Kill what the command has left behind in sessions of its own."""
    for _ in range(ROUNDS):
        left = list(_descendants(token))
        for process in left:
            try:
                process.kill()
            except psutil.Error:
                continue  # it ended by itself
        if not left:
            return
        psutil.wait_procs(left, timeout=0.1)


def _descendants(token: str) -> Iterator[psutil.Process]:
    """Processes of this user that carry the token. The environment of others cannot be read, and a zombie has none."""
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and process.environ().get(TOKEN) == token:
                yield process
        except (psutil.Error, OSError):
            continue
