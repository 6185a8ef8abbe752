"""Closed-loop load on an OpenAI-compatible endpoint, with the server's own counters as the referee."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec

from agents.decoding import NotUnderstood, decoded
from agents.wire import ModelList
from orchestrator.serving.bench_result import BenchRepeat, BenchResult, dead, measured, summary
from orchestrator.serving.load import UNREACHABLE, RequestRecord, closed_loop, open_session
from orchestrator.serving.prometheus import EngineMetrics
from orchestrator.serving.scrape import MetricsTooLong, scrape

if TYPE_CHECKING:
    import aiohttp

TOKEN_IDS = range(1_000, 20_000)
"""Ids that are ordinary words in every vocabulary in use; special tokens lie below or far above."""
WARM_UP_TOKENS = 32
METRICS_S = 10.0
BODIES_AT_ONCE = 64


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`url`: see `agents.address.api_base`. `requests` is per repeat; None means four times the concurrency, so that the tail does not rule."""

    url: str
    model: str | None = None
    api_key: str | None = None
    input_tokens: int = 512
    output_tokens: int = 512
    concurrency: int = 256
    requests: int | None = None
    repeats: int = 3
    seed: int = 0
    out: Path | None = None
    request_timeout_s: float = 600.0

    def requests_per_repeat(self) -> int:
        return 4 * self.concurrency if self.requests is None else self.requests


async def run_bench(options: BenchOptions) -> BenchResult:
    """Warms up, runs the repeats, and writes `repeat-N.jsonl` (one record a request) to `options.out`, each file at once or not at all.

    A dead endpoint is a result in which every request failed, not an exception; it is asked once. Fastest on uvloop.
    """
    async with open_session(api_key=options.api_key, timeout_s=options.request_timeout_s) as session:
        model, failure = (options.model, None) if options.model else await _discover(session, options.url)
        if model is None or await _nobody_there(session, options, model):
            return summary([dead(options.requests_per_repeat(), failure or UNREACHABLE)] * options.repeats, concurrency=options.concurrency)
        warm_up = await _bodies(options, model, -1, min(options.concurrency, options.requests_per_repeat()))
        await closed_loop(session, f"{options.url}/completions", warm_up, concurrency=options.concurrency)
        return summary(
            [await _repeat(session, options, model, number) for number in range(options.repeats)], concurrency=options.concurrency
        )


async def _nobody_there(session: aiohttp.ClientSession, options: BenchOptions, model: str) -> bool:
    """Whether a first request finds nobody: then no others need be sent."""
    probe = await _bodies(options, model, -1, 1)
    (record,) = await closed_loop(session, f"{options.url}/completions", probe, concurrency=1)
    return record.failure == UNREACHABLE


async def _repeat(session: aiohttp.ClientSession, options: BenchOptions, model: str, number: int) -> BenchRepeat:
    bodies = await _bodies(options, model, number, options.requests_per_repeat())
    before = await _metrics(session, options.url)
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    records = await closed_loop(session, f"{options.url}/completions", bodies, concurrency=options.concurrency)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    after = await _metrics(session, options.url)
    if options.out is not None:
        await asyncio.to_thread(_write, options.out / f"repeat-{number + 1}.jsonl", records)
    return measured(records, wall_s=wall_s, client_cpu_s=cpu_s, before=before, after=after)


async def _metrics(session: aiohttp.ClientSession, url: str) -> EngineMetrics:
    """The engine's counters now; all None when it has none, or they are not to be had."""
    import aiohttp

    try:
        return await scrape(session, url, timeout_s=METRICS_S) or EngineMetrics()
    except (aiohttp.ClientError, TimeoutError, OSError, MetricsTooLong):
        return EngineMetrics()


async def _discover(session: aiohttp.ClientSession, url: str) -> tuple[str | None, str | None]:
    """The first model of the endpoint and None, or None and why there is none."""
    import aiohttp

    try:
        async with session.get(f"{url}/models", timeout=aiohttp.ClientTimeout(total=30)) as response:
            if response.status != 200:
                return None, f"http {response.status}"
            models = decoded(await response.read(), ModelList).data
            return (models[0].id, None) if models else (None, "no model")
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None, UNREACHABLE
    except NotUnderstood:
        return None, "no valid answer"


async def _bodies(options: BenchOptions, model: str, repeat: int, count: int) -> list[bytes]:
    """Encoded beforehand, so that making prompts costs nothing while the clock runs. Repeat -1 is the warm-up."""
    bodies: list[bytes] = []
    for index in range(count):
        bodies.append(_body(options, model, repeat, index))
        if index % BODIES_AT_ONCE == 0:
            await asyncio.sleep(0)  # thousands of them take seconds: Ctrl-C must get through
    return bodies


def _body(options: BenchOptions, model: str, repeat: int, index: int) -> bytes:
    return msgspec.json.encode(
        {
            "model": model,
            # Ids, not words: they give exactly the length that was asked for.
            "prompt": Random(f"{options.seed}/{repeat}/{index}").choices(TOKEN_IDS, k=options.input_tokens),  # noqa: S311 - prompts, repeatable on purpose
            "max_tokens": options.output_tokens if repeat >= 0 else min(WARM_UP_TOKENS, options.output_tokens),
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


def _write(path: Path, records: Sequence[RequestRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
    Path(name).replace(path)
