"""Tokens and their rates: per attempt, over all attempts, and against the engine's own counter.

Rates are tokens in a sliding window of wall-clock, taken from the meters a few times a second. The total's rate comes from the total's own samples:
a sum of averages would count a stream that has just ended as if it went on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import msgspec

from agents.meter import Meter
from orchestrator.task import Activity

SAMPLE_S = 0.25
WINDOW_S = 5.0
MOST = 2**60

AttemptKey = tuple[str, int]
"""(task id, attempt number)."""


class Window:
    """A rising total, sampled; its rate over the last `WINDOW_S` seconds."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, at: float, total: int) -> None:
        """`at` in monotonic seconds. A total that fell (a counter that began again) starts the window anew."""
        samples = self._samples
        if samples and total < samples[-1][1]:
            samples.clear()
        samples.append((at, total))
        # One sample from before the window stays: the rate is over all of it, and there is one when samples come seldom.
        while len(samples) > 2 and samples[1][0] <= at - WINDOW_S:
            samples.popleft()

    def rate(self) -> float | None:
        """Per second; None before there are two samples, or when no time lies between them."""
        if len(self._samples) < 2:
            return None
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Sums of tokens. `cached` is None when no engine ever said."""

    input: int = 0
    cached: int | None = None
    output: int = 0

    def plus(self, other: Tokens) -> Tokens:
        return Tokens(input=self.input + other.input, cached=_add(self.cached, other.cached), output=self.output + other.output)


def _add(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


def tokens_of(meter: Meter) -> Tokens:
    return Tokens(input=meter.input_tokens, cached=meter.cached_tokens, output=meter.output_tokens)


@dataclass(slots=True, kw_only=True)
class LiveAttempt:
    """What only the running station knows of an attempt. `has_mail` is true when a person may have said something since the last step."""

    meter: Meter
    activity: Activity = "workspace"
    has_mail: bool = True
    window: Window = field(default_factory=Window)


class TokenBook:
    """All attempts' tokens: those at work through their meters, the others as a sum.

    Give `settled` what the store holds of all attempts that are not at work; `open` an attempt when its worker starts (its meter begins with what the
    attempt had used before, which is taken out of the sum) and `close` it when the worker ends.
    """

    def __init__(self, settled: Tokens) -> None:
        self._settled = settled
        self._live: dict[AttemptKey, LiveAttempt] = {}
        self._output = Window()
        self._input = Window()

    def open(self, key: AttemptKey, live: LiveAttempt) -> None:
        before = tokens_of(live.meter)
        cached = None if self._settled.cached is None else self._settled.cached - (before.cached or 0)
        self._settled = Tokens(input=self._settled.input - before.input, cached=cached, output=self._settled.output - before.output)
        self._live[key] = live

    def close(self, key: AttemptKey) -> None:
        self._settled = self._settled.plus(tokens_of(self._live.pop(key).meter))

    def live(self, key: AttemptKey) -> LiveAttempt | None:
        """None for an attempt that nobody works on."""
        return self._live.get(key)

    def rate(self, key: AttemptKey) -> float | None:
        """Output tokens per second of one attempt; None when it is not live, or has been silent for the whole window."""
        live = self._live.get(key)
        if live is None:
            return None
        rate = live.window.rate()
        return rate if rate or live.meter.streaming else None

    def sample(self, at: float) -> None:
        """Take all totals down; call it about every `SAMPLE_S`. `at` in monotonic seconds."""
        settled = self._settled
        output, input_ = settled.output, settled.input
        for live in self._live.values():
            meter = live.meter
            live.window.add(at, meter.output_tokens)
            output += meter.output_tokens
            input_ += meter.input_tokens
        self._output.add(at, output)
        self._input.add(at, input_)

    def total(self) -> Tokens:
        total = self._settled
        for live in self._live.values():
            total = total.plus(tokens_of(live.meter))
        return total

    def output_rate(self) -> float | None:
        return self._output.rate()

    def input_rate(self) -> float | None:
        return self._input.rate()


class ServerCount(msgspec.Struct, kw_only=True):
    """The engine's token counter, less what it showed when this home began to use it; survives restarts of station and engine.

    `carried` are the tokens of engine processes that have ended, `baseline` and `last` the counter of the present one. All are stored as a setting.

    What an engine counted between its last reading and its death nobody can ask it any more. Agents may have received tokens of that time:
    so many it has counted at least, and a sum below that would show a difference that no engine made. So, where another process begins to
    count, the sum is raised to `counted`, the agents' output tokens at that moment.
    """

    url: str = ""
    carried: int = 0
    baseline: int | None = None
    last: int | None = None

    def see(self, counter: int, *, counted: int) -> bool:
        """Take a reading; whether it is a new process's, which began at 0: a counter below the last reading."""
        restarted = self.last is not None and counter < self.last
        if self.baseline is None or self.last is None:
            self._carry(0, at_least=counted)
            self.baseline = counter
        elif restarted:
            self._carry(self.last - self.baseline, at_least=counted - counter)
            self.baseline = 0
        self.last = counter
        return restarted

    def new_engine(self, *, fresh: bool, counted: int) -> None:
        """Another process serves from here on: one that we started (`fresh`: its counter begins at 0), or one whose past is not ours."""
        if self.baseline is not None and self.last is not None:
            self._carry(self.last - self.baseline, at_least=counted)
        elif fresh:
            self._carry(0, at_least=counted)
        self.baseline = self.last = 0 if fresh else None

    def _carry(self, tokens: int, *, at_least: int) -> None:
        # A counter that is no counter may rise and fall for ever; the sum must stay a number that can be stored.
        self.carried = min(max(self.carried + tokens, at_least), MOST)

    @property
    def output_tokens(self) -> int | None:
        """None before the first reading of any engine."""
        if self.baseline is None or self.last is None:
            return self.carried or None
        return self.carried + self.last - self.baseline
