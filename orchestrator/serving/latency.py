"""Latency formulas, as `vllm bench serve` defines them (vllm/benchmarks/serve.py); all times in seconds.

    TTFT   first output chunk - the request's send, after the client's own queue
    TPOT   (E2EL - TTFT) / (output tokens - 1): the first token is not in it (GuideLLM's TPOT has it in)
    ITL    the gap between two chunks that carry output; with speculation one chunk holds several tokens
    E2EL   last output chunk - the request's send

AIPerf calls TPOT "inter token latency": figures of two tools compare only when the formulas do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import msgspec


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """None where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


def percentile(values: Sequence[float], q: float) -> float | None:
    """The q-th percentile (0 to 100, nearest rank), in the unit of `values`.

    None when there are no values: nothing measured is not zero milliseconds.
    """
    if not values:
        return None
    rank = max(1, math.ceil(q / 100 * len(values)))
    return sorted(values)[rank - 1]


def percentiles(values: Sequence[float]) -> Percentiles:
    ordered = sorted(values)  # sorting sorted values again costs next to nothing
    return Percentiles(p50=percentile(ordered, 50), p95=percentile(ordered, 95), p99=percentile(ordered, 99))


def ttft_s(sent_s: float, chunk_times_s: Sequence[float]) -> float | None:
    """None when no output came."""
    return chunk_times_s[0] - sent_s if chunk_times_s else None


def e2el_s(sent_s: float, chunk_times_s: Sequence[float]) -> float | None:
    """None when no output came."""
    return chunk_times_s[-1] - sent_s if chunk_times_s else None


def tpot_s(sent_s: float, chunk_times_s: Sequence[float], output_tokens: int | None) -> float | None:
    """None when the number of tokens is not known, and below two tokens: one token has no time per further token."""
    if not chunk_times_s or output_tokens is None or output_tokens < 2:
        return None
    return (chunk_times_s[-1] - chunk_times_s[0]) / (output_tokens - 1)


def itl_s(chunk_times_s: Sequence[float]) -> list[float]:
    """The gaps between chunks, one fewer than there are chunks."""
    return [after - before for before, after in itertools.pairwise(chunk_times_s)]
