"""The conversation made fit to be sent: one malformed call must not poison every request after it.

Engines answer 400, or silently something wrong, to arguments that are no JSON object, calls without results, results without calls, and
empty assistant messages. The trajectory keeps what really was; this is what the model sees. The same history always gives the same
bytes, and a longer one only adds to them, so that the engine's prefix cache hits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from agents.decoding import NotUnderstood, decoded
from agents.messages import Assistant, Message, ToolCall, ToolResult

INTERRUPTED = "Interrupted before the result was recorded: whether it took effect is unknown. Look before you do it again."
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN_CHARACTERS = 200


def well_formed(history: Sequence[Message]) -> list[Message]:
    messages: list[Message] = []
    expected: dict[str, ToolCall] = {}
    for message in history:
        if isinstance(message, ToolResult):
            if expected.pop(message.call_id, None) is not None:
                messages.append(message)
            continue
        messages += [interrupted(call) for call in expected.values()]
        expected = {}
        if isinstance(message, Assistant):
            if not message.text and not message.tool_calls:
                continue
            message = msgspec.structs.replace(message, tool_calls=tuple(_sendable(call) for call in message.tool_calls))
            expected = {call.id: call for call in message.tool_calls}
        messages.append(message)
    messages += [interrupted(call) for call in expected.values()]
    return messages


def open_calls(history: Sequence[Message]) -> list[ToolCall]:
    """Calls of the last reply that have no result yet."""
    answered: set[str] = set()
    for message in reversed(history):
        match message:
            case ToolResult(call_id=call_id):
                answered.add(call_id)
            case Assistant(tool_calls=calls):
                return [call for call in calls if call.id not in answered]
            case _:
                return []
    return []


def interrupted(call: ToolCall) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, text=INTERRUPTED, ok=False)


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(decoded(arguments), dict)
    except NotUnderstood:
        return False


def _sendable(call: ToolCall) -> ToolCall:
    name = call.name if _NAME.fullmatch(call.name) else "invalid"
    if not _is_object(call.arguments):
        diagnosis = {"invalid_arguments": call.arguments[:_SHOWN_CHARACTERS]}
        return ToolCall(id=call.id, name=name, arguments=msgspec.json.encode(diagnosis).decode())
    return call if name == call.name else msgspec.structs.replace(call, name=name)
