"""The openai SDK's client as `agents.model` uses it, and what its failures mean.

Covers: an answer's size and its redirections. Refusals are read here, to a bound, and redirections refused: the SDK would wait for all of
a body and carry a conversation to wherever it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from agents.errors import ModelRejected, ModelUnavailable
from agents.patience import Patience
from agents.refusals import Refusal, refusal

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncAPIResponse, AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

    Client: TypeAlias = AsyncOpenAI
    Response: TypeAlias = AsyncAPIResponse[AsyncStream[ChatCompletionChunk]]

LIST_BYTES = 8 << 20
"""The longest list of models that is read: large gateways list some hundreds, a kilobyte each."""
REFUSAL_BYTES = 1 << 20
"""So much of an error document, or of what came in a stream's place, is read."""
REFUSAL_S = 10.0
DEPTH = 10


class StatusRefused(Exception):
    """The endpoint answered with a status that is no success."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.body, self.headers = status, body, headers


async def _expect_success(response: httpx2.Response) -> None:
    """Reads a refusal itself: the SDK would wait for all of its body, and follow a redirection to wherever it leads, conversation and all."""
    if response.status_code < 300:
        return
    if response.status_code < 400:
        body = f"it sends us to {response.headers.get('location', 'nowhere')[:300]}: if that is right, give that address".encode()
    else:
        body = await beginning(response.aiter_bytes())
    raise StatusRefused(response.status_code, body, response.headers)


def open_client(url: str, api_key: str | None, patience: Patience) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout

    local = urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}
    return AsyncOpenAI(
        base_url=url,
        api_key=api_key or "none",  # the SDK insists on one; engines without a key ignore it
        max_retries=0,  # waiting is `agents.asking`'s business, behind one gate for all agents
        timeout=Timeout(patience.wordless_s, connect=patience.connect_s),  # between two pieces; `agents.patience` is stricter
        http_client=DefaultAioHttpClient(
            trust_env=not local,  # a proxy for the outside world must not catch a local engine
            event_hooks={"response": [_expect_success]},
        ),
    )


def failure(error: Exception, *, max_tokens: int | None) -> Refusal:
    """What a request's exception means; raises `error` itself when it means a fault of ours."""
    from openai import APIConnectionError

    if isinstance(error, StatusRefused):
        return refusal(error.status, error.body, error.headers, max_tokens=max_tokens)
    if isinstance(error, APIConnectionError):
        return ModelUnavailable(unreached(error, str(error.request.url)) or f"cannot reach the endpoint: {words(error.__cause__ or error)}")
    raise error


def unreached(error: BaseException, url: str) -> str | None:
    """Why no connection to `url` came about, in words for a person; None when it was not for lack of a connection."""
    root, depth = error, 0
    while (below := root.__cause__ or (None if root.__suppress_context__ else root.__context__)) is not None and depth < DEPTH:
        root, depth = below, depth + 1
    if not isinstance(root, OSError):
        return None
    # The event loop's own words when several addresses of a host have refused: that error has no number.
    refused = isinstance(root, ConnectionRefusedError) or "Connect call failed" in str(root)
    reason = "connection refused" if refused else root.strerror
    where = urlsplit(url)
    return f"{reason} at {where.scheme}://{where.netloc}" if reason else None


def connection_error() -> type[Exception]:
    from openai import APIConnectionError

    return APIConnectionError


def words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """What of a refusal comes soon: its status is known already."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(REFUSAL_S):
            async for piece in pieces:
                body += piece
                if len(body) >= REFUSAL_BYTES:
                    break
    return bytes(body[:REFUSAL_BYTES])


async def whole(pieces: AsyncIterator[bytes]) -> bytes:
    """Raises `ModelRejected` for more than `LIST_BYTES`."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > LIST_BYTES:
            raise ModelRejected(f"its list of models is longer than {LIST_BYTES >> 20} MiB")
    return bytes(body)
