"""What a station costs at 256 agents and 12,000 tokens/s, one token a chunk, and how much of the engine it leaves unused.

    python tests/benchmarks/bench_station.py [--agents 256] [--tokens 700] [--steps 4] [--profile FILE.svg]

All agents wait at a pipe until the last one is there, then stream `steps` replies of `tokens` tokens each, with a note after each. The measured
window begins once the commotion of the common start is over and ends when the first agent submits; a dashboard's 4 polls a second are part of it.
The same engine then serves a bare closed loop of the same lengths and concurrency.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from orchestrator.client import StationClient
from orchestrator.home import Home
from orchestrator.launch import StationOptions, spawn_station, stop_station
from orchestrator.serving.bench import BenchOptions, run_bench
from orchestrator.task import Limits, TaskSpec
from orchestrator.views import Snapshot

PACKAGES = Path(__file__).resolve().parents[2]
POLL_S = 0.25
SETTLE_S = 15.0
PRESET = "plain-12k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Measured in the window, but for `agents_tokens` and `engine_tokens`, which are the whole run's."""

    window_s: float
    tokens_per_s: float
    station_cpu: float
    children_cpu: float
    engine_cpu: float
    agents_tokens: int
    engine_tokens: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=700)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--profile", help="write a flame graph of the window (needs py-spy)")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-station-"))
    try:
        scripts = write_scripts(folder, args)
        with engine(scripts) as (url, pid):
            seen = through_the_station(folder, url, pid, args)
        with engine(scripts) as (url, _):
            options = BenchOptions(
                url=f"{url}/v1", input_tokens=512, output_tokens=args.tokens, concurrency=args.agents, requests=3 * args.agents, repeats=1
            )
            bare = asyncio.run(run_bench(options)).output_tokens_per_s
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(seen, bare)


def show(seen: Seen, bare: float | None) -> None:
    gap = (seen.engine_tokens - seen.agents_tokens) / seen.engine_tokens
    rows = [
        ("window (s)", f"{seen.window_s:.1f}", ""),
        ("station, share of one core", f"{seen.station_cpu:.0%}", "under 80 %"),
        ("its children (git, tools)", f"{seen.children_cpu:.0%}", "stated apart"),
        ("the simulated engine", f"{seen.engine_cpu:.0%}", "stated apart"),
        ("tokens/s seen by the agents", f"{seen.tokens_per_s:,.0f}", ""),
        ("tokens/s of the bare load", f"{bare:,.0f}" if bare else "n/a", ""),
        ("ratio", f"{seen.tokens_per_s / bare:.3f}" if bare else "n/a", "at least 0.95"),
        ("agents' tokens, whole run", f"{seen.agents_tokens:,}", ""),
        ("engine's tokens, whole run", f"{seen.engine_tokens:,}", ""),
        ("unattributed", f"{gap:.3%}", "at most 0.5 %"),
    ]
    for name, value, aim in rows:
        print(f"{name:<30}{value:>14}   {aim}")


@contextmanager
def engine(scripts: Path) -> Iterator[tuple[str, int]]:
    """(root URL, pid) of a fresh simulated engine."""
    argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--profile", PRESET, "--script", str(scripts)]
    process = subprocess.Popen(argv, cwd=PACKAGES, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("ready "), line
        yield line.removeprefix("ready ").strip(), process.pid
    finally:
        process.terminate()
        process.wait()


def write_scripts(folder: Path, args: argparse.Namespace) -> Path:
    """First step: wait at the gate. Then the replies that are measured."""
    scripts = folder / "scripts"
    scripts.mkdir()
    wait = json.dumps(f"cat {folder / 'gate'}")
    for number in range(args.agents):
        lines = [
            f'task = "task-{number}"',
            "[[step]]",
            "[[step.call]]",
            'tool = "run"',
            f"arguments = {{ command = {wait}, timeout_s = 600 }}",
        ]
        for step in range(args.steps):
            lines += [
                "[[step]]",
                f"filler_tokens = {args.tokens}",
                "[[step.call]]",
                'tool = "note"',
                f'arguments = {{ text = "part {step}" }}',
            ]
        lines += ["[[step]]", "[[step.call]]", 'tool = "submit"', 'arguments = { summary = "done" }']
        (scripts / f"task-{number}.toml").write_text("\n".join(lines) + "\n")
    return scripts


def tasks(folder: Path, agents: int) -> list[TaskSpec]:
    repo = folder / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("one\n")
    git = ["git", "-C", str(repo), "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *command], check=True)
    base = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    return [
        TaskSpec(
            id=f"task-{number}",
            title=f"Task {number}",
            prompt="Write. " * 100,
            repo=str(repo),
            base_commit=base,
            target_branch="main",
            sandbox="none",
            limits=Limits(tokens=10_000_000),
        )
        for number in range(agents)
    ]


def through_the_station(folder: Path, url: str, engine_pid: int, args: argparse.Namespace) -> Seen:
    home = Home.at(folder / "home")
    gate = folder / "gate"
    os.mkfifo(gate)
    station = psutil.Process(spawn_station(home, StationOptions(endpoint=f"{url}/v1", agents=args.agents)))
    client = StationClient(home)
    try:
        client.add(tasks(folder, args.agents))
        poll(client, lambda seen: sum(row.activity == "tool" for row in seen.tasks) == args.agents, "all agents at the gate")
        gate.write_text("")
        opened = time.monotonic()
        poll(client, lambda seen: time.monotonic() > opened + SETTLE_S, "the start is over")
        profiler = profile(station.pid, args.profile)
        before, began = Reading.take(client, station, engine_pid), time.monotonic()
        poll(client, lambda seen: seen.totals.output_tokens > 0.9 * args.agents * args.tokens * args.steps, "nine tenths are written")
        after, window_s = Reading.take(client, station, engine_pid), time.monotonic() - began
        if profiler is not None:
            profiler.send_signal(signal.SIGINT)
            profiler.wait()
        end = poll(
            client,
            lambda seen: seen.queue.get("verified", 0) == args.agents and seen.totals.unattributed_tokens is not None,
            "all verified",
        )
        assert end.totals.server_output_tokens is not None
        return Seen(
            window_s=window_s,
            tokens_per_s=(after.tokens - before.tokens) / window_s,
            station_cpu=(after.station_s - before.station_s) / window_s,
            children_cpu=(after.children_s - before.children_s) / window_s,
            engine_cpu=(after.engine_s - before.engine_s) / window_s,
            agents_tokens=end.totals.output_tokens,
            engine_tokens=end.totals.server_output_tokens,
        )
    finally:
        stop_station(home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """CPU seconds so far: of the station, of its children that have ended, of the engine."""

    tokens: int
    station_s: float
    children_s: float
    engine_s: float

    @classmethod
    def take(cls, client: StationClient, station: psutil.Process, engine_pid: int) -> Reading:
        own, served = station.cpu_times(), psutil.Process(engine_pid).cpu_times()
        return cls(
            tokens=client.snapshot().totals.output_tokens,
            station_s=own.user + own.system,
            children_s=own.children_user + own.children_system,
            engine_s=served.user + served.system,
        )


def poll(client: StationClient, over: Callable[[Snapshot], bool], what: str) -> Snapshot:
    """Like a dashboard, until what is waited for has come."""
    started, seq = time.monotonic(), 0
    while True:
        seen = client.snapshot(seq)
        seq = seen.seq
        if over(seen):
            sys.stderr.write(f"{what}: {time.monotonic() - started:.1f} s\n")
            return seen
        time.sleep(POLL_S)


def profile(pid: int, out: str | None) -> subprocess.Popen[bytes] | None:
    return subprocess.Popen(["py-spy", "record", "-p", str(pid), "-o", out, "-d", "600", "-r", "200"]) if out else None


if __name__ == "__main__":
    main()
