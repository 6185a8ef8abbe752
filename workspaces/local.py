"""Commands without isolation: for `--sandbox none`, and for macOS.

Covers: a process group of its own, no terminal, an environment without secrets, a HOME and TMPDIR of its own, the end of every descendant
that still carries the command's token in its environment.
Does not cover: anything else. The command may read and write whatever the user may.
"""

from __future__ import annotations

from pathlib import Path

from workspaces.process import Completed
from workspaces.sandbox import SandboxKind


class LocalSandbox:
    kind: SandboxKind = "none"

    def __init__(self, workspace: Path, *, path: str) -> None:
        raise NotImplementedError

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        """As `Sandbox.run`."""
        raise NotImplementedError
