"""A model that answers a conversation: the seam, and the client for any OpenAI-compatible endpoint.

The openai SDK sends the requests (connections, time-outs, status errors); the stream's bytes are decoded by `agents.sse` and
`agents.stream`, since the SDK's own stream objects cost several times more CPU per chunk. `import agents.model` does not import the
SDK (a second of work): the first request does, in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec

from agents.address import api_base
from agents.dialect import Dialect
from agents.errors import ModelFault, ModelRejected, ModelUnavailable
from agents.gate import Gate
from agents.messages import Assistant, Message
from agents.meter import Meter
from agents.refusals import Refusal, error_message, refusal
from agents.sse import EventStream
from agents.stream import ReplyBuilder
from agents.wire import Json, ListedModel, ModelList, request_messages

if TYPE_CHECKING:
    from openai import AsyncAPIResponse, AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

    Response: TypeAlias = AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]

CONNECT_S = 10.0
IDLE_S = 600.0
"""The longest silence: queueing for the engine, prefill of a long prompt, or a server that holds back a big argument."""
GRACE_S = 5.0
"""How long the rest (usage, `[DONE]`) may take once the finish reason came."""
STALE_S = 1.0
"""A connection error sooner than this may be a kept-alive connection that the server had closed; it is tried once again at once."""
PAUSE_PER_STREAM_S = 0.0008
"""Between the first text and the finish reason a stream is read at intervals of this times the streams at work, so that all of them
together wake the station some 1,250 times a second: at 256 streams of 47 chunks a second that takes 40 % off the client's CPU.
"""
LONGEST_PAUSE_S = 0.1
"""Bounds what the end of a reply may be noticed late; the time to first token is not touched."""
LIST_BYTES = 8 << 20
"""The longest list of models that is read: large gateways list some hundreds, a kilobyte each."""
NAMED = 8
"""So many models are told of when the one asked for is not among them."""
LONGEST_WINDOW = 2**31
NOT_FOUND = 404


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

    `url`: see `agents.address`; ValueError for one to which no request could go. `model` None: the first one that the endpoint lists,
    looked up again with each `info` and when the endpoint no longer knows it. What an endpoint turns out not to take (usage with every chunk, usage at all, `max_tokens`) is left out from then on.
    """

    def __init__(
        self, url: str, *, model: str | None = None, api_key: str | None = None, gate: Gate | None = None, idle_s: float = IDLE_S
    ) -> None:
        self.url = api_base(url)
        self.gate = gate or Gate()
        self._named = model
        self._model = model
        self._api_key = api_key
        self._idle_s = idle_s
        self._client: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()
        self._streams = 0
        self._dialect = Dialect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. A later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def info(self) -> ModelInfo:
        """The model in use and its window, as `/v1/models` has it now. Raises `ModelUnavailable` or `ModelRejected`."""
        listed = await self._listed()
        found = next((entry for entry in listed if self._named in (None, entry.id)), None)
        if found is None:
            raise ModelRejected(f"{self.url} serves {_names(listed)}" + (f", not {self._named}" if self._named else ""))
        self._model = found.id
        window = found.max_model_len
        return ModelInfo(model=found.id, max_model_len=window if window is not None and 0 < window <= LONGEST_WINDOW else None)

    async def _listed(self) -> Sequence[ListedModel]:
        client = await self._connected()
        try:
            async with client.models.with_streaming_response.list() as response:
                body = await _limited(response.iter_bytes())
        except ModelRejected:
            raise
        except Exception as error:
            refused = _refused(error, max_tokens=None)
            raise (ModelUnavailable(str(refused)) if isinstance(refused, ModelFault) else refused) from error
        try:
            return msgspec.json.decode(body, type=ModelList).data
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ModelRejected(f"{self.url}/models is no list of models: {error}") from None

    async def reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, session: str, meter: Meter, max_tokens: int | None
    ) -> Reply:
        if self._model is None:
            await self.info()
        body: Json = {"messages": request_messages(messages)}
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        builder = ReplyBuilder(meter)
        self._streams += 1
        try:
            response = await self._sent(body, session, max_tokens)
            try:
                await self._read(response, builder)
            finally:
                await response.close()
        finally:
            self._streams -= 1
            builder.close()
        return Reply(
            message=builder.message(max_tokens=max_tokens), ttft_s=builder.ttft_s, decode_s=builder.decode_s, chunks=builder.chunks
        )

    async def _sent(self, body: Json, session: str, max_tokens: int | None) -> Response:
        """A response that began as a stream; raises what a refusal means."""
        retried = False
        while True:
            began = time.monotonic()
            try:
                response = await self._post({**body, **self._dialect.options(max_tokens)}, session)
            except Exception as error:
                refused = _refused(error, max_tokens=max_tokens)
                stale = not retried and time.monotonic() - began < STALE_S and isinstance(error, _connection_error())
                retried = retried or stale
                if stale or (isinstance(refused, ModelRejected) and (self._dialect.learn(str(refused)) or await self._renamed(error))):
                    continue
                raise refused from error
            self.gate.answered()
            return response

    async def _renamed(self, error: Exception) -> bool:
        """Whether the endpoint refused a model that it no longer serves and that nobody asked for: then the one it serves now is used."""
        if self._named is not None or getattr(error, "status_code", None) != NOT_FOUND:
            return False
        before = self._model
        return (await self.info()).model != before

    async def _post(self, body: Json, session: str) -> Response:
        client = await self._connected()
        request = client.chat.completions.with_streaming_response.create(
            model=self._model or "",
            messages=[],  # the SDK's own conversion of a long conversation takes 20 ms; what is in `extra_body` goes as it is
            stream=True,
            extra_body=body,
            extra_headers={"X-Session-ID": session},
        )
        return await request.__aenter__()

    async def _read(self, response: Response, builder: ReplyBuilder) -> None:
        """Ends when the reply is whole: `[DONE]`, the end of the stream, or silence after the finish reason."""
        kind = response.headers.get("content-type", "")
        if "json" in kind or "html" in kind:
            raise ModelFault(f"the endpoint answered with {kind}, not with a stream: {error_message(await response.read())[:300]}")
        events, pieces = EventStream(), response.iter_bytes()
        while not builder.done:
            try:
                piece = await (_soon(pieces) if builder.finish_reason else anext(pieces))
            except StopAsyncIteration:
                break
            except Exception as error:
                if builder.finish_reason:
                    return
                raise ModelFault(f"the stream broke: {_words(error)}") from error
            builder.take(events.feed(piece))
            if builder.ttft_s is not None and not builder.finish_reason:
                await asyncio.sleep(self._pause_s())
        builder.take(events.close())

    def _pause_s(self) -> float:
        return min(LONGEST_PAUSE_S, self._streams * PAUSE_PER_STREAM_S)

    async def _connected(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(_client, self.url, self._api_key, self._idle_s)
            return self._client


async def _limited(pieces: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > LIST_BYTES:
            raise ModelRejected(f"its list of models is longer than {LIST_BYTES >> 20} MiB")
    return bytes(body)


def _names(listed: Sequence[ListedModel]) -> str:
    named = ", ".join(entry.id for entry in listed[:NAMED])
    return f"{named} and {len(listed) - NAMED} more" if len(listed) > NAMED else named or "no model"


async def _soon(pieces: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(GRACE_S):
        return await anext(pieces)


def _client(url: str, api_key: str | None, idle_s: float) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout

    local = urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}
    return AsyncOpenAI(
        base_url=url,
        api_key=api_key or "none",  # the SDK insists on one; engines without a key ignore it
        max_retries=0,  # waiting is `agents.asking`'s business, behind one gate for all agents
        timeout=Timeout(idle_s, connect=CONNECT_S),
        http_client=DefaultAioHttpClient(trust_env=not local),  # a proxy for the outside world must not catch a local engine
    )


def _refused(error: Exception, *, max_tokens: int | None) -> Refusal:
    from openai import APIConnectionError, APIStatusError

    if isinstance(error, APIStatusError):
        return refusal(error.status_code, error.response.content, error.response.headers, max_tokens=max_tokens)
    if isinstance(error, APIConnectionError):
        return ModelUnavailable(f"cannot reach the endpoint: {_words(error.__cause__ or error)}")
    raise error


def _connection_error() -> type[Exception]:
    from openai import APIConnectionError

    return APIConnectionError


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _tool(schema: ToolSchema) -> Json:
    parameters: object = msgspec.json.decode(schema.parameters)
    return {"type": "function", "function": {"name": schema.name, "description": schema.description, "parameters": parameters}}
