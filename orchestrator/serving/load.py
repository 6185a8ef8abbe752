"""A closed loop of streamed completions, and what each request saw: raw times, and tokens as the engine counts them.

The stream is read in whatever pieces arrive and decoded by msgspec into the few fields of interest; per chunk that costs a seventh of the openai SDK's
own objects, so that the client is not what limits a fast engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from asyncio_pool import AioPool  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    import aiohttp

READ_BUFFER_BYTES = 1 << 20
"""aiohttp's 64 KiB make long streams collapse at high rates (vllm-project/vllm issue 39963)."""
CONNECT_TIMEOUT_S = 10.0
UNREACHABLE = "unreachable"
"""The cause of a request whose connection was refused or could not be made."""


class RequestRecord(msgspec.Struct, kw_only=True):
    """One request. Times are seconds of the process's monotonic clock; only differences mean something."""

    index: int
    sent_s: float
    ended_s: float = 0.0
    status: int | None = None
    chunk_times_s: list[float] = []
    """When each chunk that carries output was read; chunks that arrive together share a time."""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None
    fingerprint: str | None = None
    failure: str | None = None
    """The cause in a few words that are the same for the same cause; None for a complete answer."""


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    system_fingerprint: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Broken(Exception):
    """The stream says itself that it failed."""


async def closed_loop(session: aiohttp.ClientSession, url: str, bodies: Sequence[bytes], *, concurrency: int) -> list[RequestRecord]:
    """Sends each body to `url`, `concurrency` of them at any time. A failed request is a record with its cause, never an exception.

    Once `concurrency` requests in a row found nobody there, the rest are not sent and count as unreachable too.
    """
    pool = AioPool(size=concurrency)
    records: list[RequestRecord] = []
    nobody = 0

    async def one(index: int, body: bytes) -> None:
        nonlocal nobody
        if nobody >= concurrency:
            now = time.monotonic()
            records.append(RequestRecord(index=index, sent_s=now, ended_s=now, failure=UNREACHABLE))
            return
        record = await send(session, url, body, index=index)
        nobody = nobody + 1 if record.failure == UNREACHABLE else 0
        records.append(record)

    # Not `spawn`: while it waits for a place it swallows a cancellation, and the request with it.
    for index, body in enumerate(bodies):
        pool.spawn_n(one(index, body))  # pyright: ignore[reportUnknownMemberType]
    try:
        await pool.join()
    except asyncio.CancelledError:
        await pool.cancel()  # pyright: ignore[reportUnknownMemberType]
        raise
    return sorted(records, key=lambda record: record.index)


async def send(session: aiohttp.ClientSession, url: str, body: bytes, *, index: int) -> RequestRecord:
    import aiohttp

    record = RequestRecord(index=index, sent_s=time.monotonic())
    try:
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
            record.status = response.status
            if response.status != 200:
                record.failure = f"http {response.status}"
            else:
                await _read(response, record)
    except TimeoutError:
        record.failure = "time-out"
    except aiohttp.ClientConnectorError:
        record.failure = UNREACHABLE
    except (aiohttp.ClientError, OSError):
        record.failure = "connection lost" if record.status is None else "stream cut"
    except _Broken as broken:
        record.failure = str(broken)
    except (ValueError, RecursionError):  # msgspec's errors, and UnicodeDecodeError
        record.failure = "no valid answer"
    record.ended_s = time.monotonic()
    return record


async def _read(response: aiohttp.ClientResponse, record: RequestRecord) -> None:
    decode = msgspec.json.Decoder(_Chunk).decode
    rest, done = b"", False
    async for data in response.content.iter_any():
        now = time.monotonic()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            payload = line[5:].strip()
            if payload == b"[DONE]":
                done = True
            else:
                _take(decode(payload), record, now)
    if not record.chunk_times_s:
        raise _Broken("no output")
    if record.finish_reason is None:
        raise _Broken("no finish reason" if done else "stream cut")


def _take(chunk: _Chunk, record: RequestRecord, now: float) -> None:
    if bytes(chunk.error) != b"null":
        raise _Broken("error in the stream")
    for choice in chunk.choices:
        if choice.text:
            record.chunk_times_s.append(now)
        if choice.finish_reason is not None:
            record.finish_reason = choice.finish_reason
    if chunk.system_fingerprint is not None:
        record.fingerprint = chunk.system_fingerprint
    if (usage := chunk.usage) is not None:
        record.input_tokens = usage.prompt_tokens
        record.output_tokens = usage.completion_tokens
        if usage.prompt_tokens_details is not None:
            record.cached_tokens = usage.prompt_tokens_details.cached_tokens


def open_session(*, api_key: str | None, timeout_s: float) -> aiohttp.ClientSession:
    """A session without a limit on connections: the loop bounds them."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S),
        headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
        read_bufsize=READ_BUFFER_BYTES,
    )
