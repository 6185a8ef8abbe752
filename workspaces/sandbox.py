"""Where an agent's commands and a task's checks run."""

from __future__ import annotations

from typing import Literal, Protocol

from workspaces.process import Completed

SandboxKind = Literal["bubblewrap", "none"]


class Sandbox(Protocol):
    """Runs shell commands for one workspace."""

    @property
    def kind(self) -> SandboxKind: ...

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        """Run `command` with `sh -c` in the workspace's top folder; stdin is closed, stdout and stderr share one pipe.

        Returns within 2 s of the end of the foreground command, with the output so far; everything that the command
        started is dead by then. At most `limit_bytes` of output are kept (head and tail).
        Raises `SandboxUnavailable` when the command could not even be started.
        """
        ...
