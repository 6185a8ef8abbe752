"""A `ChatModel` that says what it is told to: the seam for tests of whatever drives an agent."""

from __future__ import annotations

from collections.abc import Sequence

from agents.gate import Gate
from agents.messages import Assistant, Message, ToolCall
from agents.meter import Meter
from agents.model import Reply, ToolSchema


class ScriptedModel:
    """Answers with `turns` one after the other; an exception among them is raised instead. `requests` holds what was asked."""

    def __init__(self, turns: Sequence[Assistant | Exception], *, gate: Gate | None = None) -> None:
        raise NotImplementedError

    async def reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, session: str, meter: Meter, max_tokens: int | None
    ) -> Reply:
        raise NotImplementedError


def calls(*tool_calls: tuple[str, dict[str, object]], text: str = "") -> Assistant:
    """A turn that calls tools: `calls(("read", {"path": "a.py"}))`."""
    raise NotImplementedError


__all__ = ["ScriptedModel", "ToolCall", "calls"]
