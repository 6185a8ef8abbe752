"""What the station reads from an engine's /metrics (Prometheus text, names of vLLM 0.22 to 0.33).

A whole exposition of vLLM is some thousand lines, nearly all of them histogram buckets; only the names in the tables below are looked at.
"""

from __future__ import annotations

import msgspec

COUNTERS = {
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_tokens",
    "vllm:generation_tokens_total": "output_tokens",
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:request_success_total": "finished",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
}
"""Exposed name to field; the samples of all labels (several engines, all finish reasons) are added up."""
USAGE = "vllm:kv_cache_usage_perc"
LARGEST = float(2**53)
"""Above it a count is no count: a float is not exact there, and no engine gets that far."""


class EngineMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """One reading. None where the engine does not expose a value; token counts are since the engine's start."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prefix_queries: int | None = None
    """In tokens."""
    prefix_hits: int | None = None
    """In tokens."""
    finished: int | None = None
    """Requests, aborted ones included."""
    preemptions: int | None = None
    drafts: int | None = None
    """Rounds of speculation."""
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None
    """0 to 1, the fullest engine's."""


def parse_metrics(text: str) -> EngineMetrics:
    """Lines that are not understood are passed over: another server's metrics give a reading of None."""
    sums: dict[str, float] = {}
    usage: float | None = None
    for line in text.splitlines():
        if not line.startswith("vllm:"):
            continue
        name = line[: _name_end(line)]
        if (field := COUNTERS.get(name)) is not None:
            if (value := _value(line)) is not None:
                sums[field] = sums.get(field, 0.0) + value
        elif name == USAGE and (value := _value(line)) is not None and value <= 1:
            usage = max(usage or 0.0, value)
    counts = {field: int(value) for field, value in sums.items() if value <= LARGEST}
    return msgspec.convert({**counts, "kv_cache_usage": usage}, EngineMetrics)


def acceptance_length(before: EngineMetrics, after: EngineMetrics) -> float | None:
    """Tokens per round between two readings, 1 + accepted / rounds (vLLM's definition). None without speculation."""
    drafts, accepted = difference(before.drafts, after.drafts), difference(before.accepted_tokens, after.accepted_tokens)
    if not drafts or accepted is None:
        return None
    return 1 + accepted / drafts


def prefix_hit_rate(before: EngineMetrics, after: EngineMetrics) -> float | None:
    """Share (0 to 1) of the prompts' tokens between two readings that came from the prefix cache. None when nothing was looked up."""
    queries, hits = difference(before.prefix_queries, after.prefix_queries), difference(before.prefix_hits, after.prefix_hits)
    if not queries or hits is None:
        return None
    return hits / queries


def difference(before: int | None, after: int | None) -> int | None:
    """None when either reading lacks the counter, or when it fell: then the engine was restarted in between."""
    if before is None or after is None or after < before:
        return None
    return after - before


def _name_end(line: str) -> int:
    brace = line.find("{")
    return brace if brace != -1 else line.find(" ")


def _value(line: str) -> float | None:
    """The sample's value: what follows the labels, before a timestamp. None when it is no number of 0 or more."""
    rest = line.rpartition("}")[2] if "{" in line else line.partition(" ")[2]
    try:
        value = float(rest.split()[0])
    except (ValueError, IndexError):
        return None
    return value if 0 <= value < float("inf") else None
