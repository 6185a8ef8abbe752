"""The chat-completions API's JSON: what is read of a stream's chunks, and how a conversation is written.

Unknown fields are skipped, and every field may be missing or null: engines and gateways differ in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, cast

import msgspec

from agents.messages import Assistant, Message, System, ToolCall, ToolResult, Usage, User

Json: TypeAlias = dict[str, object]


class FunctionDelta(msgspec.Struct, frozen=True, gc=False):
    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, frozen=True, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(msgspec.Struct, frozen=True, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CallDelta] | None = None


class Choice(msgspec.Struct, frozen=True, gc=False):
    delta: Delta | None = None
    finish_reason: str | None = None


MOST_TOKENS = 10**9
"""More than any engine counts for one request: what is above, or below zero, is no count."""
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class PromptDetails(msgspec.Struct, frozen=True, gc=False):
    cached_tokens: int | None = None


class WireUsage(msgspec.Struct, frozen=True, gc=False):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    prompt_tokens_details: PromptDetails | None = None

    def usage(self) -> Usage | None:
        """None when a part is missing. Cached tokens are a part of the prompt's: another number of them says nothing."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        cached = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None
        return Usage(
            input_tokens=self.prompt_tokens,
            output_tokens=self.completion_tokens,
            cached_tokens=cached if cached is not None and 0 <= cached <= self.prompt_tokens else None,
        )


class BareChunk(msgspec.Struct, frozen=True, gc=False):
    """A chunk whatever its usage looks like."""

    choices: list[Choice] | None = None
    error: msgspec.Raw | None = None


class Chunk(BareChunk, frozen=True, gc=False):
    usage: WireUsage | None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
decode_bare_chunk = msgspec.json.Decoder(BareChunk).decode


def error_text(body: object) -> str | None:
    """The message of an error document: `{"error": {"message"}}`, `{"error": "…"}`, or vLLM's older `{"object": "error", "message"}`."""
    if not isinstance(body, dict):
        return None
    document = cast(dict[str, Any], body)
    inner: object = document.get("error")
    if inner:
        message: object = cast(dict[str, Any], inner).get("message") if isinstance(inner, dict) else inner
        return str(message or document)
    if document.get("object") == "error" or "message" in document:
        return str(document.get("message") or document)
    return None


def request_messages(messages: Sequence[Message]) -> list[Json]:
    """The conversation as the API takes it. It must be well-formed (`agents.history.well_formed`). Reasoning is not sent back."""
    return [_message(message) for message in messages]


def _message(message: Message) -> Json:
    match message:
        case System(text=text):
            return {"role": "system", "content": text}
        case User(text=text):
            return {"role": "user", "content": text}
        case ToolResult(call_id=call_id, text=text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case Assistant(text=text, tool_calls=()):
            return {"role": "assistant", "content": text}
        case Assistant(text=text, tool_calls=calls):
            return {"role": "assistant", "content": text or None, "tool_calls": [_call(call) for call in calls]}


def _call(call: ToolCall) -> Mapping[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


class ListedModel(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(max_length=500)]
    max_model_len: int | None = None
    owned_by: object = None

    def simulated(self) -> bool:
        """Whether the server says that there is no model behind it."""
        return isinstance(self.owned_by, str) and "simulated" in self.owned_by


class ModelList(msgspec.Struct, frozen=True):
    """What `/v1/models` answers."""

    data: list[ListedModel]
