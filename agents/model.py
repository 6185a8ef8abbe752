"""A model that answers a conversation: the seam, and the client for any OpenAI-compatible endpoint.

The openai SDK sends the requests (connections, time-outs, status errors); the stream's bytes are decoded by `agents.sse` and
`agents.stream`, since the SDK's own stream objects cost several times more CPU per chunk. `import agents.model` does not import the SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from agents.gate import Gate
from agents.messages import Assistant, Message
from agents.meter import Meter


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the model is told of it. `parameters` is JSON Schema, as JSON text, so that its bytes never vary."""

    name: str
    description: str
    parameters: msgspec.Raw


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A finished reply. `ttft_s`: request sent to first text, thinking or call; `decode_s`: first to last of them; None without any."""

    message: Assistant
    ttft_s: float | None
    decode_s: float | None
    chunks: int


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`max_model_len` is the window in tokens, None when the endpoint does not say."""

    model: str
    max_model_len: int | None


class ChatModel(Protocol):
    @property
    def gate(self) -> Gate:
        """One for all who ask this endpoint; closed while the endpoint refuses."""
        ...

    async def reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, session: str, meter: Meter, max_tokens: int | None
    ) -> Reply:
        """One whole reply; `session` is the task's id. Raises the meter while the reply streams.

        Raises `ModelFault` (broken reply), `ModelUnavailable` (nothing to be had now), `ContextTooLong`, `ModelRejected`.
        """
        ...


class OpenAIModel:
    """`ChatModel` on an OpenAI-compatible endpoint. Share one per endpoint, in one event loop; `async with` closes its connections.

    `url` ends in `/v1` (added when missing). `model` None: the first one that the endpoint lists.
    """

    def __init__(
        self, url: str, *, model: str | None = None, api_key: str | None = None, gate: Gate | None = None, idle_s: float = 600.0
    ) -> None:
        raise NotImplementedError


async def discover(url: str, *, api_key: str | None = None) -> ModelInfo:
    """The first model that the endpoint lists. Raises `ModelUnavailable` or `ModelRejected`."""
    raise NotImplementedError
