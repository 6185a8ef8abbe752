"""The tools of an agent, the same for every task."""

from __future__ import annotations

from pathlib import Path

from agents.messages import ToolCall, ToolResult
from agents.model import ToolSchema
from workspaces.sandbox import Sandbox


class Toolbox:
    """Tools on one workspace: read, list, search, edit, write, run, note, submit."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        raise NotImplementedError

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The same order and bytes for every toolbox."""
        raise NotImplementedError

    async def call(self, call: ToolCall) -> ToolResult:
        """Validate and run one call. What the model did wrong is a result with `ok` False. Raises `WorkspaceError` when the sandbox is down."""
        raise NotImplementedError
