"""A model that answers a conversation: the seam, and the client for any OpenAI-compatible endpoint.

The openai SDK sends the requests (connections, time-outs, status errors); the stream's bytes are decoded by `agents.sse` and
`agents.stream`, since the SDK's own stream objects cost several times more CPU per chunk. `import agents.model` does not import the
SDK (a second of work): the first request does, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from agents.address import api_base
from agents.connection import StatusRefused, beginning, connection_error, failure, open_client, whole, words
from agents.decoding import NotUnderstood, decoded
from agents.dialect import Dialect
from agents.errors import ModelFault, ModelRejected, ModelUnavailable
from agents.gate import Gate
from agents.messages import Assistant, Message
from agents.meter import Meter
from agents.patience import Patience, Watch
from agents.refusals import error_message
from agents.sse import EventStream
from agents.stream import ReplyBuilder
from agents.wire import Json, ListedModel, ModelList, request_messages

if TYPE_CHECKING:
    from agents.connection import Client, Response

log = logging.getLogger(__name__)

STALE_S = 1.0
"""A connection error sooner than this may be a kept-alive connection that the server had closed; it is tried once again at once."""
PAUSE_PER_STREAM_S = 0.0008
"""Between the first text and the finish reason a stream is read at intervals of this times the streams at work, so that all of them
together wake the station some 1,250 times a second: at 256 streams of 47 chunks a second that takes 40 % off the client's CPU.
"""
LONGEST_PAUSE_S = 0.1
"""Bounds what the end of a reply may be noticed late; the time to first token is not touched."""
STREAM_BYTES = 64 << 20
"""The longest stream, framing and all: 4 KB for each token of the longest reply that agents ask for."""
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
    """`max_model_len` is the window in tokens, None when the endpoint does not say; `simulated` when it says that there is no model."""

    model: str
    max_model_len: int | None
    simulated: bool = False


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
    looked up again with each `info` and when the endpoint no longer knows it. What an endpoint turns out not to take (usage with every chunk,
    usage at all, `max_tokens`) is left out from then on.

    `unserved` says whether the engine is known, from elsewhere, to work on no request at all.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        gate: Gate | None = None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        unserved: Callable[[], bool] = lambda: False,
    ) -> None:
        self.url = api_base(url)
        self.gate = gate or Gate()
        self._named = model
        self._model = model
        self._api_key = api_key
        self._patience = patience
        self._unserved = unserved
        self._told_of_usage = False
        self._client: Client | None = None
        self._client_url = ""
        self._connecting = asyncio.Lock()
        self._streams = 0
        self._dialect = Dialect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def move_to(self, url: str) -> None:
        """The endpoint is to be found there from now on. Requests under way are cut off when the next one is made, and fail as by an outage."""
        self.url = api_base(url)

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
        window = window if window is not None and 0 < window <= LONGEST_WINDOW else None
        return ModelInfo(model=found.id, max_model_len=window, simulated=found.simulated())

    async def _listed(self) -> Sequence[ListedModel]:
        client = await self._connected()
        try:
            async with asyncio.timeout(self._patience.wordless_s), client.models.with_streaming_response.list() as response:
                body = await whole(response.iter_bytes())
        except ModelRejected:
            raise
        except TimeoutError:
            raise ModelUnavailable(f"its list of models did not come within {self._patience.wordless_s:g} s") from None
        except Exception as error:
            refused = failure(error, max_tokens=None)
            raise (ModelUnavailable(str(refused)) if isinstance(refused, ModelFault) else refused) from error
        try:
            return decoded(body, ModelList).data
        except NotUnderstood as error:
            raise ModelRejected(f"{self.url}/models is no list of models: {error}") from None

    async def reply(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, session: str, meter: Meter, max_tokens: int | None
    ) -> Reply:
        if self._model is None:
            await self.info()
        body: Json = {"messages": request_messages(messages)}
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        builder = ReplyBuilder(meter, max_tokens=max_tokens)
        self._streams += 1
        try:
            asked_at = asyncio.get_running_loop().time()
            response = await self._sent(body, session, max_tokens)
            try:
                await self._read(response, builder, asked_at)
            finally:
                await response.close()
        finally:
            self._streams -= 1
            builder.close()
            self._tell_of_usage(builder)
        return Reply(message=builder.message(), ttft_s=builder.ttft_s, decode_s=builder.decode_s, chunks=builder.chunks)

    def _tell_of_usage(self, builder: ReplyBuilder) -> None:
        if builder.odd_usage and not self._told_of_usage:
            self._told_of_usage = True
            log.warning("%s reports token counts that cannot be; they are taken as not reported", self.url)

    async def _sent(self, body: Json, session: str, max_tokens: int | None) -> Response:
        """A response that began as a stream; raises what a refusal means."""
        retried = False
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._patience.wordless_s):
                    response = await self._post({**body, **self._dialect.options(max_tokens)}, session)
            except TimeoutError:
                raise ModelUnavailable(f"the endpoint did not answer within {self._patience.wordless_s:g} s") from None
            except Exception as error:
                refused = failure(error, max_tokens=max_tokens)
                stale = not retried and time.monotonic() - began < STALE_S and isinstance(error, connection_error())
                retried = retried or stale
                if stale or (isinstance(refused, ModelRejected) and (self._dialect.learn(str(refused)) or await self._renamed(error))):
                    continue
                raise refused from error
            self.gate.answered()
            return response

    async def _renamed(self, error: Exception) -> bool:
        """Whether the endpoint refused a model that it no longer serves and that nobody asked for: then the one it serves now is used."""
        if self._named is not None or not isinstance(error, StatusRefused) or error.status != NOT_FOUND:
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

    async def _read(self, response: Response, builder: ReplyBuilder, asked_at: float) -> None:
        """Ends when the reply is whole: `[DONE]`, the end of the stream, or too long a wait for either after the finish reason."""
        watch = Watch(self._patience, asked_at=asked_at, unserved=self._unserved)
        try:
            async with watch:
                kind = response.headers.get("content-type", "")
                if "json" in kind or "html" in kind:
                    said = error_message(await beginning(response.iter_bytes()))
                    raise ModelFault(f"the endpoint answered with {kind[:100]}, not with a stream: {said[:300]}")
                await self._take(response.iter_bytes(), builder, watch)
        except TimeoutError:
            if not builder.finish_reason:
                raise ModelFault(f"the stream was given up: {watch.reason}") from None

    async def _take(self, pieces: AsyncIterator[bytes], builder: ReplyBuilder, watch: Watch) -> None:
        events, received_bytes = EventStream(), 0
        while not builder.done:
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                break
            except Exception as error:
                if builder.finish_reason:
                    return
                raise ModelFault(f"the stream broke: {words(error)}") from error
            received_bytes += len(piece)
            if received_bytes > STREAM_BYTES:
                raise ModelFault(f"the stream was longer than {STREAM_BYTES >> 20} MiB")
            before = builder.written
            builder.take(events.feed(piece))
            watch.heard(line=b"\n" in piece or b"\r" in piece, words=builder.written > before, whole=builder.finish_reason is not None)
            if builder.written and not builder.finish_reason:
                await asyncio.sleep(self._pause_s())
        builder.take(events.close())

    def _pause_s(self) -> float:
        return min(LONGEST_PAUSE_S, self._streams * PAUSE_PER_STREAM_S)

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client_url != self.url:
                await self.close()
            if self._client is None:
                self._client_url = self.url
                self._client = await asyncio.to_thread(open_client, self._client_url, self._api_key, self._patience)
            return self._client


def _names(listed: Sequence[ListedModel]) -> str:
    named = ", ".join(entry.id for entry in listed[:NAMED])
    return f"{named} and {len(listed) - NAMED} more" if len(listed) > NAMED else named or "no model"


def _tool(schema: ToolSchema) -> Json:
    parameters: object = msgspec.json.decode(schema.parameters)
    return {"type": "function", "function": {"name": schema.name, "description": schema.description, "parameters": parameters}}
