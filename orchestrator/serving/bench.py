"""Closed-loop load on an OpenAI-compatible endpoint, with the server's own counters as the referee."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from orchestrator.serving.latency import Percentiles


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
    out: Path | None = None
    request_timeout_s: float = 600.0


class BenchRepeat(msgspec.Struct, frozen=True, kw_only=True):
    """One closed loop. Undefined is None."""

    requests: int
    succeeded: int
    failed: int
    failures: dict[str, int]
    """Cause to count."""
    wall_s: float | None
    output_tokens: int | None
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
    """Warms up, runs the repeats, and writes one JSONL file per repeat to `options.out`, atomically.

    A dead endpoint is a result in which every request failed, not an exception.
    """
    raise NotImplementedError
