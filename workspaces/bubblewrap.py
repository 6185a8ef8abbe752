"""The default sandbox: bubblewrap, without network, with the workspace as the only place to write.

Covers: home directories, /run, /tmp, the station's home and sockets in sight are hidden; everything else is read-only; no
capability, no terminal, no network; when the command ends, everything that it started ends.
Does not cover: processor, memory and disk use; what other system folders let everybody read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workspaces.process import Completed
from workspaces.sandbox import Sandbox, SandboxKind
from workspaces.workspace import Workspace


class BubblewrapSandbox:
    """Give `hidden` every folder of the station's that no command may see; `path` is the PATH of the user's shell."""

    kind: SandboxKind = "bubblewrap"

    def __init__(self, workspace: Path, *, objects: Path, hidden: Sequence[Path], path: str) -> None:
        raise NotImplementedError

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        """As `Sandbox.run`."""
        raise NotImplementedError


async def bubblewrap_problem() -> str | None:
    """None when bubblewrap works here; else one line that names the obstacle and the remedy."""
    raise NotImplementedError


def open_sandbox(kind: SandboxKind, *, workspace: Workspace, hidden: Sequence[Path], path: str) -> Sandbox:
    """The sandbox of one workspace. Looks at PATH's folders (a few hundred stat calls), starts nothing."""
    raise NotImplementedError
