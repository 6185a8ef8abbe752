"""The figures of a bench: of one repeat, and of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import msgspec

from orchestrator.serving.latency import Percentiles, e2el_s, itl_s, percentiles, tpot_s, ttft_s
from orchestrator.serving.load import RequestRecord
from orchestrator.serving.prometheus import EngineMetrics, acceptance_length, difference, prefix_hit_rate


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


def summary(repeats: list[BenchRepeat], *, concurrency: int) -> BenchResult:
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
        concurrency=concurrency,
        repeats=repeats,
        spread=(max(rates) - min(rates)) / median(rates) if len(rates) > 1 else None,
    )


def dead(requests: int, cause: str) -> BenchRepeat:
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
