"""Reads an engine's /metrics. The server may be anyone's: what it sends is bounded, and decoded whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.address import metrics_url
from orchestrator.serving.prometheus import EngineMetrics, parse_metrics

if TYPE_CHECKING:
    import aiohttp

LIMIT_BYTES = 8 << 20
"""vLLM's are some hundred kilobytes, with many engines a few megabytes."""
TOO_MANY_REQUESTS = 429


class MetricsTooLong(Exception):
    """More than `LIMIT_BYTES`: these are no engine's metrics."""


async def scrape(session: aiohttp.ClientSession, base: str, *, timeout_s: float) -> EngineMetrics | None:
    """The metrics beside the API at `base` (see `agents.address`); None when the server has none, or keeps them to itself.

    Raises MetricsTooLong, and what aiohttp raises when the server does not answer, or not with a success.
    """
    import aiohttp

    async with session.get(metrics_url(base), timeout=aiohttp.ClientTimeout(total=timeout_s)) as response:
        if (400 <= response.status < 500 and response.status != TOO_MANY_REQUESTS) or response.status == 501:
            return None
        response.raise_for_status()
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > LIMIT_BYTES:
                raise MetricsTooLong(f"its metrics are longer than {LIMIT_BYTES >> 20} MiB")
    return parse_metrics(body.decode(errors="replace"))
