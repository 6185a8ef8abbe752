"""A `ChatModel` that says what it is told to: the seam for tests of whatever drives an agent."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from agents.errors import ModelRejected
from agents.gate import Gate
from agents.messages import Assistant, Message, ToolCall, Usage
from agents.meter import Meter
from agents.model import Reply, ToolSchema


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the model was asked."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    session: str
    max_tokens: int | None


class ScriptedModel:
    """Answers with `turns` one after the other; an exception among them is raised instead. `requests` holds what was asked.

    Raises the meter by a turn's usage, as a client does. After the last turn every request is rejected.
    """

    def __init__(self, turns: Sequence[Assistant | Exception], *, gate: Gate | None = None) -> None:
        self.gate = gate or Gate()
        self.requests: list[Request] = []
        self._turns = iter(turns)

    async def reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, session: str, meter: Meter, max_tokens: int | None
    ) -> Reply:
        self.requests.append(Request(messages=tuple(messages), tools=tuple(tools), session=session, max_tokens=max_tokens))
        turn = next(self._turns, ModelRejected("the script is over"))
        if isinstance(turn, Exception):
            raise turn
        self.gate.answered()
        if turn.usage is not None:
            meter.input_tokens += turn.usage.input_tokens
            meter.output_tokens += turn.usage.output_tokens
        return Reply(message=turn, ttft_s=0.0, decode_s=0.0, chunks=1)


_ids = itertools.count(1)


def calls(
    *tool_calls: tuple[str, Mapping[str, object]], text: str = "", finish_reason: str = "tool_calls", output_tokens: int = 10
) -> Assistant:
    """A turn that calls tools: `calls(("read", {"path": "a.py"}))`."""
    encoded = [
        ToolCall(id=f"call-{next(_ids)}", name=name, arguments=msgspec.json.encode(arguments).decode()) for name, arguments in tool_calls
    ]
    usage = Usage(input_tokens=100, output_tokens=output_tokens)
    return Assistant(text=text, tool_calls=tuple(encoded), finish_reason=finish_reason, usage=usage)


def says(text: str, *, finish_reason: str = "stop") -> Assistant:
    """A turn that only talks."""
    return Assistant(text=text, finish_reason=finish_reason, usage=Usage(input_tokens=100, output_tokens=10))
