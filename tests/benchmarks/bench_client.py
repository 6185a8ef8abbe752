"""CPU that a streaming client spends per chunk: the openai SDK's own stream objects against ours, in one run.

    python tests/benchmarks/bench_client.py [--streams 128] [--chunks 512] [--rate 50] [--rounds 2]

A server in a process of its own sends `--streams` streams at once, `--rate` chunks a second each, one token a chunk. Only the client's
CPU time counts, from the first request to the last reply, after one small warm-up. "(bare)" rows are for orientation. A round that ended
well behind the server's schedule is marked and counts only when there is no other: on a crowded machine chunks pile up, several are then
read at once, and a client looks cheaper than it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agents.messages import User
from agents.meter import Meter
from agents.model import OpenAIModel

WARM_UP = 4


def chunk(number: int, *, last: bool) -> bytes:
    usage = {"prompt_tokens": 512, "total_tokens": 512 + number, "completion_tokens": number}
    choice = {
        "index": 0,
        "delta": {"content": f" word{number}"},
        "logprobs": None,
        "finish_reason": "stop" if last else None,
        "token_ids": None,
    }
    body = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def serve(port_to: Connection, chunks: int, rate: float) -> None:
    """A bare HTTP/1.1 server, so that the server's core is not what is measured."""
    pieces = [chunk(number, last=number == chunks) for number in range(1, chunks + 1)]
    framed = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            began = time.perf_counter()
            for number, piece in enumerate(framed):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                writer.write(piece)
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    port_to.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def server_process(port_to: Connection, chunks: int, rate: float) -> None:
    import uvloop

    uvloop.run(serve(port_to, chunks, rate))


One = Callable[[], Awaitable[int]]


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[One]:
    async with OpenAIModel(url, model="m") as model:

        async def one() -> int:
            return (await model.reply([User(text="hello")], (), session="bench", meter=Meter(), max_tokens=None)).chunks

        yield one


@asynccontextmanager
async def sdk(url: str, *, aio: bool) -> AsyncIterator[One]:
    from openai import AsyncOpenAI, DefaultAioHttpClient

    client = AsyncOpenAI(base_url=url, api_key="none", http_client=DefaultAioHttpClient() if aio else None)

    async def one() -> int:
        count = 0
        text: list[str] = []
        stream = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}], stream=True)
        async for piece in stream:
            count += 1
            text.append(piece.choices[0].delta.content or "")
        return count

    yield one
    await client.close()


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[One]:
    import aiohttp
    import msgspec

    from agents.wire import Chunk

    decode = msgspec.json.Decoder(Chunk).decode
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one() -> int:
            count, tail = 0, b""
            async with session.post(f"{url}/chat/completions", json={"stream": True}) as response:
                async for data in response.content.iter_any():
                    *events, tail = (tail + data).split(b"\n\n")
                    for event in events:
                        if event != b"data: [DONE]":
                            decode(event[6:])
                            count += 1
            return count

        yield one


async def measure(client: AbstractAsyncContextManager[One], streams: int) -> tuple[int, float, float]:
    async with client as one:
        return await measured(one, streams)


async def measured(one: One, streams: int) -> tuple[int, float, float]:
    """Chunks, CPU seconds of this process, wall seconds."""
    counts: list[int] = []

    async def run() -> None:
        counts.append(await one())

    async with asyncio.TaskGroup() as group:
        for _ in range(WARM_UP):
            group.create_task(run())
    counts.clear()
    usage, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(streams):
            group.create_task(run())
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    return sum(counts), cpu_s, time.perf_counter() - began


def client_process(result_to: Connection, name: str, url: str, streams: int) -> None:
    """A process per client and round: no client pays for what another one imported or left behind."""
    import uvloop

    async def main() -> tuple[int, float, float]:
        match name:
            case "sdk":
                return await measure(sdk(url, aio=False), streams)
            case "sdk-aiohttp":
                return await measure(sdk(url, aio=True), streams)
            case "bare":
                return await measure(bare(url), streams)
            case _:
                return await measure(ours(url), streams)

    result_to.send(asyncio.run(main()) if name == "sdk" else uvloop.run(main()))


CLIENTS = {
    "sdk": "openai stream objects, default transport, asyncio",
    "sdk-aiohttp": "openai stream objects, aiohttp transport, uvloop",
    "ours": "agents.model.OpenAIModel, uvloop",
    "bare": "(bare) aiohttp iter_any + msgspec, uvloop",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="chunks per CPU second of streaming clients")
    parser.add_argument("--streams", type=int, default=128)
    parser.add_argument("--chunks", type=int, default=512)
    parser.add_argument("--rate", type=float, default=50.0, help="chunks a second of each stream")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=CLIENTS, action="append")
    wanted = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    port_from, port_to = context.Pipe(duplex=False)
    server = context.Process(target=server_process, args=(port_to, wanted.chunks, wanted.rate), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port_from.recv()}/v1"
    best: dict[str, tuple[bool, float]] = {}
    planned_s = wanted.chunks / wanted.rate
    print(f"{wanted.streams} streams of {wanted.chunks} chunks, {wanted.rate:g} a second each; best of {wanted.rounds} rounds\n")
    print(f"{'client':<52}{'chunks':>8}{'wall s':>8}{'CPU s':>8}{'µs/chunk':>10}{'chunks/CPU s':>14}")
    for _ in range(wanted.rounds):
        for name in wanted.only or CLIENTS:
            result_from, result_to = context.Pipe(duplex=False)
            client = context.Process(target=client_process, args=(result_to, name, url, wanted.streams))
            client.start()
            chunks, cpu_s, wall_s = result_from.recv()
            client.join()
            behind = wall_s > 1.15 * planned_s
            best[name] = max(best.get(name, (False, 0.0)), (not behind, chunks / cpu_s))
            print(
                f"{CLIENTS[name]:<52}{chunks:>8}{wall_s:>8.1f}{cpu_s:>8.2f}{cpu_s / chunks * 1e6:>10.1f}{chunks / cpu_s:>14,.0f}{'  behind' * behind}"
            )
    server.terminate()
    if {"ours", "sdk"} <= best.keys():
        print(f"\nours / openai stream objects on the default transport: {best['ours'][1] / best['sdk'][1]:.2f} (target: at least 4)")
    if {"ours", "bare"} <= best.keys():
        print(f"ours / bare aiohttp + msgspec loop: {best['ours'][1] / best['bare'][1]:.2f}")


if __name__ == "__main__":
    main()
