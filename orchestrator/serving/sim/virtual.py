"""The same scheduler without waiting: what a profile gives under a closed loop, in a fraction of a second. Presets are checked with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from orchestrator.serving.sim.metrics import Counters, FinishedReason
from orchestrator.serving.sim.profile import Profile
from orchestrator.serving.sim.scheduler import EngineRequest, Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRun:
    seconds: float
    steps: int
    counters: Counters

    @property
    def output_tokens_per_s(self) -> float:
        """Over the whole run, with its ramp and its tail, as a benchmark client sees it."""
        return self.counters.output_tokens / self.seconds


def closed_loop(profile: Profile, *, concurrency: int, requests: int, input_tokens: int, output_tokens: int, seed: int = 0) -> VirtualRun:
    """`concurrency` clients send `requests` requests, each the next at the moment its last one ended. Nothing is shared between prompts."""
    scheduler, now, steps = Scheduler(profile), 0.0, 0
    left: Iterator[int] = iter(range(requests))

    def send() -> None:
        if (number := next(left, None)) is not None:
            scheduler.add(_request(number, input_tokens, output_tokens, seed, now))

    for _ in range(concurrency):
        send()
    ended = 0
    while (step := scheduler.plan(now)) is not None:
        now += step.seconds
        steps += 1
        scheduler.apply(step, now)
        finished = sum(scheduler.counters.finished.values())
        for _ in range(finished - ended):
            send()
        ended = finished
    return VirtualRun(seconds=now, steps=steps, counters=scheduler.counters)


def _request(number: int, input_tokens: int, output_tokens: int, seed: int, now_s: float) -> EngineRequest:
    return EngineRequest(
        prompt_tokens=input_tokens,
        hashes=(),
        output_tokens=output_tokens,
        ends_with="length",
        draw=Random(seed * 1_000_003 + number),  # noqa: S311 - a simulation, repeatable on purpose
        on_output=_nobody_reads,
        arrived_s=now_s,
    )


def _nobody_reads(_produced: int, _ended: FinishedReason | None) -> None:
    pass
