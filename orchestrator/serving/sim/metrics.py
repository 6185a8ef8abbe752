"""The engine's counters and histograms, and their Prometheus text with vLLM's names (vllm/v1/metrics/loggers.py, spec_decode/metrics.py)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

FinishedReason: TypeAlias = Literal["stop", "length", "abort"]

TTFT_BOUNDS_S = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    640.0,
    2560.0,
)
ITL_BOUNDS_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
REQUEST_BOUNDS_S = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
    480.0,
    960.0,
    1920.0,
    7680.0,
)
TOKEN_BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


class Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True, kw_only=True)
class Counters:
    """Since the engine's start. `output_tokens` counts what the engine made, whether or not a client was left to read it."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_at: list[int] = field(default_factory=list[int])
    """Accepted drafts by their position in the round."""
    finished: dict[FinishedReason, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0})
    lost_s: float = 0.0
    """Time that the simulator was too late to make up for: its rates are not the profile's while this grows."""
    ttft_s: Histogram = field(default_factory=lambda: Histogram(TTFT_BOUNDS_S))
    itl_s: Histogram = field(default_factory=lambda: Histogram(ITL_BOUNDS_S))
    e2e_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_BOUNDS_S))
    queue_s: Histogram = field(default_factory=lambda: Histogram(REQUEST_BOUNDS_S))
    request_prompt_tokens: Histogram = field(default_factory=lambda: Histogram(TOKEN_BOUNDS))
    request_output_tokens: Histogram = field(default_factory=lambda: Histogram(TOKEN_BOUNDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    running: int
    waiting: int
    kv_usage: float
    num_gpu_blocks: int
    block_size: int
    prefix_caching: bool
    speculates: bool


def render(counters: Counters, gauges: Gauges, *, model: str) -> str:
    labels = {"engine": "0", "model_name": model}
    lines = [*_gauge_lines(gauges, labels), *_counter_lines(counters, labels)]
    if gauges.speculates:
        lines += _speculation_lines(counters, labels)
    lines += _histogram_lines(counters, labels)
    lines += _metric(
        "stationmaster:simulator_lost_seconds_total", "counter", "Time the simulator could not make up for.", [({}, counters.lost_s)]
    )
    return "\n".join(lines) + "\n"


def _gauge_lines(gauges: Gauges, labels: Mapping[str, str]) -> Iterator[str]:
    yield from _metric("vllm:num_requests_running", "gauge", "Requests in the batch (simulated).", [(labels, gauges.running)])
    yield from _metric("vllm:num_requests_waiting", "gauge", "Requests in the queue (simulated).", [(labels, gauges.waiting)])
    yield from _metric("vllm:kv_cache_usage_perc", "gauge", "KV blocks in use, 1 is all of them (simulated).", [(labels, gauges.kv_usage)])
    config = {
        "engine": "0",
        "block_size": str(gauges.block_size),
        "num_gpu_blocks": str(gauges.num_gpu_blocks),
        "enable_prefix_caching": str(gauges.prefix_caching),
    }
    yield from _metric("vllm:cache_config_info", "gauge", "Sizes of the cache (simulated).", [(config, 1)])


def _counter_lines(counters: Counters, labels: Mapping[str, str]) -> Iterator[str]:
    values = {
        "prompt_tokens": counters.prompt_tokens,
        "prompt_tokens_cached": counters.cached_tokens,
        "generation_tokens": counters.output_tokens,
        "prefix_cache_queries": counters.prefix_queries,
        "prefix_cache_hits": counters.prefix_hits,
        "num_preemptions": counters.preemptions,
    }
    for name, value in values.items():
        yield from _metric(f"vllm:{name}_total", "counter", f"{name} (simulated).", [(labels, value)])
    finished = [({**labels, "finished_reason": reason}, count) for reason, count in counters.finished.items()]
    yield from _metric("vllm:request_success_total", "counter", "Requests that ended (simulated).", finished)


def _speculation_lines(counters: Counters, labels: Mapping[str, str]) -> Iterator[str]:
    values = {"drafts": counters.drafts, "draft_tokens": counters.draft_tokens, "accepted_tokens": counters.accepted_tokens}
    for name, value in values.items():
        yield from _metric(f"vllm:spec_decode_num_{name}_total", "counter", f"{name} (simulated).", [(labels, value)])
    positions = [({**labels, "position": str(position)}, count) for position, count in enumerate(counters.accepted_at)]
    yield from _metric(
        "vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter", "Accepted drafts by position (simulated).", positions
    )


def _histogram_lines(counters: Counters, labels: Mapping[str, str]) -> Iterator[str]:
    histograms = {
        "time_to_first_token_seconds": counters.ttft_s,
        "inter_token_latency_seconds": counters.itl_s,
        "e2e_request_latency_seconds": counters.e2e_s,
        "request_queue_time_seconds": counters.queue_s,
        "request_prompt_tokens": counters.request_prompt_tokens,
        "request_generation_tokens": counters.request_output_tokens,
    }
    for name, histogram in histograms.items():
        yield f"# HELP vllm:{name} {name} (simulated)."
        yield f"# TYPE vllm:{name} histogram"
        below = 0
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            below += count
            limit = "+Inf" if bound == float("inf") else str(float(bound))
            yield f"vllm:{name}_bucket{_labels({**labels, 'le': limit})} {float(below)}"
        yield f"vllm:{name}_count{_labels(labels)} {float(below)}"
        yield f"vllm:{name}_sum{_labels(labels)} {histogram.total}"


def _metric(name: str, kind: str, help_text: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    # The Python client writes a counter's family without `_total` and its samples with it.
    family = name.removesuffix("_total")
    yield f"# HELP {family if kind == 'counter' else name} {help_text}"
    yield f"# TYPE {family if kind == 'counter' else name} {kind}"
    for labels, value in samples:
        yield f"{name}{_labels(labels)} {float(value)}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    escaped = (f'{key}="{value}"' for key, value in labels.items())
    return "{" + ",".join(escaped) + "}"
