"""`bench`: closed-loop load on an endpoint."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from orchestrator.cli.options import key_in, with_home, with_json
from orchestrator.cli.output import fail, one_line, print_json, say, table
from orchestrator.config import endpoint_url
from orchestrator.home import Home

if TYPE_CHECKING:
    from orchestrator.serving.bench import BenchResult
    from orchestrator.serving.latency import Percentiles

T = TypeVar("T")

# Below this share of successes the figures describe the failures, not the engine.
SUCCESS_SHARE = 0.9


@click.command()
@click.option("--endpoint", required=True, metavar="URL", help="An OpenAI-compatible server, as in http://127.0.0.1:8000/v1.")
@click.option("--model", metavar="NAME", help="The model's name there (default: the first that it lists).")
@click.option("--api-key-env", metavar="VAR", help="The environment variable that holds the endpoint's key.")
@click.option("--input-tokens", default=512, type=click.IntRange(1), metavar="N", show_default=True)
@click.option("--output-tokens", default=512, type=click.IntRange(1), metavar="N", show_default=True)
@click.option(
    "--concurrency", default=256, type=click.IntRange(1, 8192), metavar="N", show_default=True, help="Requests in flight at once."
)
@click.option("--requests", type=click.IntRange(1), metavar="N", help="Requests in each repeat (default: four times the concurrency).")
@click.option("--repeats", default=3, type=click.IntRange(1, 100), metavar="N", show_default=True)
@click.option("--seed", default=0, type=int, metavar="N", show_default=True, help="The same seed gives the same prompts.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write one JSONL file for each repeat here.")
@with_json
@with_home
def bench(
    home: Home,
    as_json: bool,
    endpoint: str,
    model: str | None,
    api_key_env: str | None,
    input_tokens: int,
    output_tokens: int,
    concurrency: int,
    requests: int | None,
    repeats: int,
    seed: int,
    out: Path | None,
) -> int:
    """Measure an endpoint under load: a closed loop of requests, with the server's own counters as the referee.

    Exits 1 when fewer than nine requests in ten succeed.

    \b
    Example:  stationmaster bench --endpoint http://127.0.0.1:8000/v1 --concurrency 32 --requests 128
    """
    url, key = endpoint_url(endpoint), key_in(api_key_env)
    from orchestrator.serving.bench import BenchOptions, run_bench

    options = BenchOptions(
        url=url,
        model=model,
        api_key=key,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        requests=requests,
        repeats=repeats,
        seed=seed,
        out=out,
    )
    result = _until_interrupted(run_bench(options))
    if as_json:
        print_json(result)
    elif result.succeeded:
        for line in _lines(result):
            say(line)
    if not result.succeeded:
        return fail(f"no request succeeded at {url}: {_causes(result)}", f"`stationmaster doctor --endpoint {url}` asks it too")
    good = result.success_share() >= SUCCESS_SHARE
    return 0 if good else fail(f"{result.failed} of {result.requests} requests failed: {_causes(result)}")


def _until_interrupted(work: Coroutine[None, None, T]) -> T:
    """What `work` gives. KeyboardInterrupt after the first SIGINT or SIGTERM, with its requests cancelled and its connections closed."""

    async def cancellable() -> T:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _causes(result: BenchResult) -> str:
    return ", ".join(f"{one_line(cause)} ({number})" for cause, number in result.failures.items()) or "no cause known"


def _lines(result: BenchResult) -> Iterator[str]:
    yield f"{result.succeeded} of {result.requests} requests succeeded, {result.concurrency} at once, {_figure(result.wall_s)} s"
    yield f"output  {_figure(result.output_tokens)} tokens, {_figure(result.output_tokens_per_s)} tokens/s (spread over repeats {_share(result.spread)})"
    yield f"server  {_figure(result.server_output_tokens)} tokens by its own counter, gap to the client {_share(result.client_gap)}"
    yield f"client  {_figure(result.chunks_per_s)} chunks/s, {_figure(result.client_cpu_s)} s of CPU"
    yield ""
    named = (("TTFT", result.ttft_s), ("TPOT", result.tpot_s), ("ITL", result.itl_s), ("E2EL", result.e2el_s))
    rows = [[name, *_milliseconds(values)] for name, values in named]
    yield from table(["ms", "p50", "p95", "p99"], rows, right=frozenset({1, 2, 3}))
    yield ""
    yield (
        f"acceptance length {_figure(result.acceptance_length)}, prefix-cache hit rate {_share(result.prefix_cache_hit_rate)}, "
        f"preemptions {_figure(result.preemptions)}"
    )


def _milliseconds(values: Percentiles) -> list[str]:
    return [_figure(None if value is None else value * 1e3) for value in (values.p50, values.p95, values.p99)]


def _figure(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:,.2f}"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.1%}"
