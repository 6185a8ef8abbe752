"""What the simulated engine costs, and how well its presets fit. Prints tables; not a test.

python tests/benchmarks/bench_simulator.py [--streams 256] [--tokens 512] [--only cost|fit]
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(ROOT := Path(__file__).resolve().parents[2]))

import aiohttp
import msgspec
import psutil
import uvloop

from orchestrator.serving.prometheus import parse_metrics
from orchestrator.serving.sim.profile import MEASURED, fitted
from orchestrator.serving.sim.virtual import closed_loop

CHAT = {"messages": [{"role": "user", "content": "count"}], "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
COMPLETION = {"prompt": [1, 2, 3], "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    tokens: int
    wall_s: float
    engine_cpu_s: float
    lost_s: float


async def load(url: str, path: str, body: dict[str, object], streams: int) -> Cost:
    """Reads and throws away: the engine's process is what is measured."""

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        async with session.post(f"{url}{path}", json={**body, "seed": number}) as response:
            async for _ in response.content.iter_any():
                pass

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(streams):
                group.create_task(one(session, number))
        wall_s = time.monotonic() - began
        text = await (await session.get(f"{url}/metrics")).text()
    lost_s = next(float(line.split()[1]) for line in text.splitlines() if line.startswith("stationmaster:simulator_lost_seconds_total"))
    return Cost(tokens=parse_metrics(text).output_tokens or 0, wall_s=wall_s, engine_cpu_s=0.0, lost_s=lost_s)


def cost(path: str, body: dict[str, object], *, streams: int, tokens: int) -> Cost:
    argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--port", "0", "--profile", "plain-12k"]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stderr is not None
        url = engine.stderr.readline().split()[1]
        before = psutil.Process(engine.pid).cpu_times()
        found = uvloop.run(load(url, path, {**body, "max_tokens": tokens, "ignore_eos": True, "stream": True}, streams))
        after = psutil.Process(engine.pid).cpu_times()
        engine.terminate()
    cpu_s = after.user + after.system - before.user - before.system
    return Cost(tokens=found.tokens, wall_s=found.wall_s, engine_cpu_s=cpu_s, lost_s=found.lost_s)


def print_costs(streams: int, tokens: int) -> None:
    print(f"\nThe engine's own process, `plain-12k`, {streams} streams of {tokens} tokens, one token a chunk\n")
    print("| endpoint | chunks/s | CPU of one core | chunks per CPU second | µs per chunk | time lost (s) |")
    print("|---|---|---|---|---|---|")
    for name, path, body in (("completions", "/v1/completions", COMPLETION), ("chat, usage in every chunk", "/v1/chat/completions", CHAT)):
        found = cost(path, body, streams=streams, tokens=tokens)
        per_cpu_s = found.tokens / found.engine_cpu_s
        share = found.engine_cpu_s / found.wall_s
        print(
            f"| {name} | {found.tokens / found.wall_s:,.0f} | {share:.0%} | {per_cpu_s:,.0f} | {1e6 / per_cpu_s:.1f} | {found.lost_s:.2f} |"
        )


def print_fits() -> None:
    print(
        "\nPresets against what was measured, closed loop, 512 tokens in and 512 out, requests four and sixteen times the concurrency (virtual time)\n"
    )
    print("| preset | requests | measured tok/s | 4 x | error | 16 x | error |")
    print("|---|---|---|---|---|---|---|")
    for name, (at_32, at_256, _) in MEASURED.items():
        for concurrency, measured in ((32, at_32), (256, at_256)):
            short, long = (
                closed_loop(
                    fitted(name), concurrency=concurrency, requests=times * concurrency, input_tokens=512, output_tokens=512
                ).output_tokens_per_s
                for times in (4, 16)
            )
            print(
                f"| {name} | {concurrency} | {measured:,} | {short:,.0f} | {short / measured - 1:+.1%} | {long:,.0f} | {long / measured - 1:+.1%} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--only", choices=["cost", "fit"])
    args = parser.parse_args()
    print(f"msgspec {msgspec.__version__}, Python {sys.version.split()[0]}")
    if args.only != "fit":
        print_costs(args.streams, args.tokens)
    if args.only != "cost":
        print_fits()


if __name__ == "__main__":
    main()
