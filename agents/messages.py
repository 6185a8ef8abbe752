"""The conversation between an agent and its model, in the terms of the chat-completions API.

These structs are also the trajectory file's format: one JSON object a line, tagged by `role`.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """`arguments` is the JSON text as the model wrote it; it is parsed and validated by the tool, never trusted."""

    id: str
    name: str
    arguments: str


class System(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="system"):
    text: str


class User(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="user"):
    text: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one reply as the engine counted them. `cached_tokens` is None when the engine does not say."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int | None = None


class Assistant(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    """One finished reply. `usage` is None when the engine reported none; `reasoning` is never sent back."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str
    usage: Usage | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="tool"):
    """What a tool call gave. `ok` is False when the text is an error."""

    call_id: str
    name: str
    text: str
    ok: bool
    seconds: float | None = None


Message: TypeAlias = System | User | Assistant | ToolResult
