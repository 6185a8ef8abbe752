"""Closed-loop load on an OpenAI-compatible endpoint, with the server's own counters as the referee."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Literal

import msgspec

from orchestrator.serving.latency import Percentiles, e2el_s, itl_s, percentiles, tpot_s, ttft_s
from orchestrator.serving.load import RequestRecord, closed_loop, open_session
from orchestrator.serving.prometheus import EngineMetrics, acceptance_length, difference, parse_metrics, prefix_hit_rate

if TYPE_CHECKING:
    import aiohttp

TOKEN_IDS = range(1_000, 20_000)
"""Ids that are ordinary words in every vocabulary in use; special tokens lie below or far above."""
WARM_UP_TOKENS = 32
WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grain",
    "hazel",
    "inlet",
    "jetty",
    "knoll",
    "ledge",
    "maple",
    "north",
    "ocean",
    "pearl",
)


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`url` ends in `/v1`. `requests` is per repeat; None means four times the concurrency, so that the tail does not rule."""

    url: str
    model: str | None = None
    api_key: str | None = None
    input_tokens: int = 512
    output_tokens: int = 512
    concurrency: int = 256
    requests: int | None = None
    repeats: int = 3
    seed: int = 0
    prompt_kind: Literal["token-ids", "words"] = "token-ids"
    """Token ids give exactly the asked length; words, for servers that take no ids, about one token each."""
    out: Path | None = None
    request_timeout_s: float = 600.0

    def requests_per_repeat(self) -> int:
        return 4 * self.concurrency if self.requests is None else self.requests


class BenchRepeat(msgspec.Struct, frozen=True, kw_only=True):
    """One closed loop. Undefined is None."""

    requests: int
    succeeded: int
    failed: int
    failures: dict[str, int]
    """Cause to count."""
    wall_s: float | None
    output_tokens: int | None
    """From `usage` of the requests that succeeded; None when one of them came without."""
    output_tokens_per_s: float | None
    server_output_tokens: int | None
    client_gap: float | None
    """(server - client) / server; more than 0.02 to 0.03 means that the client is what was measured."""
    chunks_per_s: float | None
    client_cpu_s: float | None
    ttft_s: Percentiles
    tpot_s: Percentiles
    itl_s: Percentiles
    e2el_s: Percentiles
    acceptance_length: float | None
    prefix_cache_hit_rate: float | None
    preemptions: int | None
    fingerprint: str | None
    """None when the answers name none, or several."""


class BenchResult(BenchRepeat, frozen=True, kw_only=True):
    """`bench --json`: counts and seconds are sums over the repeats, rates and percentiles their medians."""

    concurrency: int
    repeats: list[BenchRepeat]
    spread: float | None
    """(highest - lowest) / median of the repeats' output tokens per second; None for one repeat."""

    def success_share(self) -> float:
        """0 to 1. Below 0.9 the figures say nothing and the command exits 1."""
        return self.succeeded / self.requests if self.requests else 0.0


async def run_bench(options: BenchOptions) -> BenchResult:
    """Warms up, runs the repeats, and writes `repeat-N.jsonl` (one record a request) to `options.out`, each file at once or not at all.

    A dead endpoint is a result in which every request failed, not an exception. Fastest on uvloop.
    """
    async with open_session(api_key=options.api_key, timeout_s=options.request_timeout_s) as session:
        model, failure = (options.model, None) if options.model else await _discover(session, options.url)
        if model is None:
            return _summary(options, [_dead(options.requests_per_repeat(), failure or "no model")] * options.repeats)
        warm_up = min(options.concurrency, options.requests_per_repeat())
        await closed_loop(session, f"{options.url}/completions", _bodies(options, model, -1, warm_up), concurrency=options.concurrency)
        return _summary(options, [await _repeat(session, options, model, number) for number in range(options.repeats)])


async def _repeat(session: aiohttp.ClientSession, options: BenchOptions, model: str, number: int) -> BenchRepeat:
    bodies = _bodies(options, model, number, options.requests_per_repeat())
    before = await read_metrics(session, options.url)
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    records = await closed_loop(session, f"{options.url}/completions", bodies, concurrency=options.concurrency)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    after = await read_metrics(session, options.url)
    if options.out is not None:
        await asyncio.to_thread(_write, options.out / f"repeat-{number + 1}.jsonl", records)
    return measured(records, wall_s=wall_s, client_cpu_s=cpu_s, before=before, after=after)


def measured(
    records: Sequence[RequestRecord], *, wall_s: float, client_cpu_s: float, before: EngineMetrics, after: EngineMetrics
) -> BenchRepeat:
    """One repeat's figures. Latencies are of the requests that succeeded."""
    good = [record for record in records if record.failure is None]
    counts = [record.output_tokens for record in good if record.output_tokens is not None]
    tokens = sum(counts) if good and len(counts) == len(good) else None
    server_tokens = difference(before.output_tokens, after.output_tokens)
    fingerprints = {record.fingerprint for record in good}
    return BenchRepeat(
        requests=len(records),
        succeeded=len(good),
        failed=len(records) - len(good),
        failures=dict(Counter(record.failure for record in records if record.failure is not None)),
        wall_s=wall_s,
        output_tokens=tokens,
        output_tokens_per_s=None if tokens is None else tokens / wall_s,
        server_output_tokens=server_tokens,
        client_gap=(server_tokens - tokens) / server_tokens if server_tokens and tokens is not None else None,
        chunks_per_s=sum(len(record.chunk_times_s) for record in records) / wall_s if good else None,
        client_cpu_s=client_cpu_s,
        ttft_s=percentiles(_known(ttft_s(r.sent_s, r.chunk_times_s) for r in good)),
        tpot_s=percentiles(_known(tpot_s(r.sent_s, r.chunk_times_s, r.output_tokens) for r in good)),
        itl_s=percentiles([gap for r in good for gap in itl_s(r.chunk_times_s)]),
        e2el_s=percentiles(_known(e2el_s(r.sent_s, r.chunk_times_s) for r in good)),
        acceptance_length=acceptance_length(before, after),
        prefix_cache_hit_rate=prefix_hit_rate(before, after),
        preemptions=difference(before.preemptions, after.preemptions),
        fingerprint=fingerprints.pop() if len(fingerprints) == 1 else None,
    )


async def read_metrics(session: aiohttp.ClientSession, url: str) -> EngineMetrics:
    """The engine's counters now; all None when it has none. `url` ends in `/v1`."""
    import aiohttp

    try:
        async with session.get(f"{url.rstrip('/').removesuffix('/v1')}/metrics", timeout=aiohttp.ClientTimeout(total=10)) as response:
            return parse_metrics(await response.text()) if response.status == 200 else EngineMetrics()
    except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError):
        return EngineMetrics()


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def _discover(session: aiohttp.ClientSession, url: str) -> tuple[str | None, str | None]:
    """The first model of the endpoint and None, or None and why there is none."""
    import aiohttp

    try:
        async with session.get(f"{url}/models", timeout=aiohttp.ClientTimeout(total=30)) as response:
            if response.status != 200:
                return None, f"http {response.status}"
            models = msgspec.json.decode(await response.read(), type=_Models).data
            return (models[0].id, None) if models else (None, "no model")
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None, "unreachable"
    except msgspec.MsgspecError:
        return None, "no valid answer"


def _bodies(options: BenchOptions, model: str, repeat: int, count: int) -> list[bytes]:
    """Encoded beforehand, so that making prompts costs nothing while the clock runs. Repeat -1 is the warm-up."""
    tokens = options.output_tokens if repeat >= 0 else min(WARM_UP_TOKENS, options.output_tokens)
    return [
        msgspec.json.encode(
            {
                "model": model,
                "prompt": _prompt(options, Random(f"{options.seed}/{repeat}/{index}")),  # noqa: S311 - prompts, repeatable on purpose
                "max_tokens": tokens,
                "ignore_eos": True,
                "temperature": 0,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )
        for index in range(count)
    ]


def _prompt(options: BenchOptions, draw: Random) -> list[int] | str:
    if options.prompt_kind == "token-ids":
        return draw.choices(TOKEN_IDS, k=options.input_tokens)
    return " ".join(draw.choices(WORDS, k=options.input_tokens))


def _summary(options: BenchOptions, repeats: list[BenchRepeat]) -> BenchResult:
    def middle(field: Callable[[BenchRepeat], float | None]) -> float | None:
        values = _known(field(repeat) for repeat in repeats)
        return median(values) if values else None

    def middles(field: Callable[[BenchRepeat], Percentiles]) -> Percentiles:
        return Percentiles(
            p50=middle(lambda repeat: field(repeat).p50),
            p95=middle(lambda repeat: field(repeat).p95),
            p99=middle(lambda repeat: field(repeat).p99),
        )

    rates = _known(repeat.output_tokens_per_s for repeat in repeats)
    failures = sum((Counter(repeat.failures) for repeat in repeats), Counter[str]())
    fingerprints = {repeat.fingerprint for repeat in repeats}
    return BenchResult(
        requests=sum(repeat.requests for repeat in repeats),
        succeeded=sum(repeat.succeeded for repeat in repeats),
        failed=sum(repeat.failed for repeat in repeats),
        failures=dict(failures),
        wall_s=_sum(repeat.wall_s for repeat in repeats),
        output_tokens=_count(repeat.output_tokens for repeat in repeats),
        output_tokens_per_s=middle(lambda repeat: repeat.output_tokens_per_s),
        server_output_tokens=_count(repeat.server_output_tokens for repeat in repeats),
        client_gap=middle(lambda repeat: repeat.client_gap),
        chunks_per_s=middle(lambda repeat: repeat.chunks_per_s),
        client_cpu_s=_sum(repeat.client_cpu_s for repeat in repeats),
        ttft_s=middles(lambda repeat: repeat.ttft_s),
        tpot_s=middles(lambda repeat: repeat.tpot_s),
        itl_s=middles(lambda repeat: repeat.itl_s),
        e2el_s=middles(lambda repeat: repeat.e2el_s),
        acceptance_length=middle(lambda repeat: repeat.acceptance_length),
        prefix_cache_hit_rate=middle(lambda repeat: repeat.prefix_cache_hit_rate),
        preemptions=_count(repeat.preemptions for repeat in repeats),
        fingerprint=fingerprints.pop() if len(fingerprints) == 1 else None,
        concurrency=options.concurrency,
        repeats=repeats,
        spread=(max(rates) - min(rates)) / median(rates) if len(rates) > 1 else None,
    )


def _dead(requests: int, cause: str) -> BenchRepeat:
    nothing = Percentiles(p50=None, p95=None, p99=None)
    return BenchRepeat(
        requests=requests,
        succeeded=0,
        failed=requests,
        failures={cause: requests},
        wall_s=None,
        output_tokens=None,
        output_tokens_per_s=None,
        server_output_tokens=None,
        client_gap=None,
        chunks_per_s=None,
        client_cpu_s=None,
        ttft_s=nothing,
        tpot_s=nothing,
        itl_s=nothing,
        e2el_s=nothing,
        acceptance_length=None,
        prefix_cache_hit_rate=None,
        preemptions=None,
        fingerprint=None,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _sum(values: Iterable[float | None]) -> float | None:
    """None when one repeat has no value: a sum over fewer repeats would look like less."""
    found = list(values)
    return sum(_known(found)) if None not in found else None


def _count(values: Iterable[int | None]) -> int | None:
    total = _sum(values)
    return None if total is None else int(total)


def _write(path: Path, records: Sequence[RequestRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
    Path(name).replace(path)
