"""Where an attempt ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from agents.messages import Assistant, Message
from agents.outcome import LimitReached

CHARACTERS_PER_TOKEN = 4


class Limits(Protocol):
    """`tokens` bounds the output tokens of all replies together; `seconds` leaves out waiting for the engine. (`TaskSpec.limits` is one.)"""

    @property
    def steps(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def steps_in(history: Sequence[Message]) -> int:
    return sum(isinstance(message, Assistant) for message in history)


def tokens_in(history: Sequence[Message]) -> int:
    """Output tokens of the replies: as the engine reported them, and where it did not, a guess by their length, so that the limit holds
    for any engine. Broken replies are not in the history: they are not the agent's.
    """
    return sum(_tokens(message) for message in history if isinstance(message, Assistant))


def _tokens(reply: Assistant) -> int:
    if reply.usage is not None:
        return reply.usage.output_tokens
    written = len(reply.text) + len(reply.reasoning) + sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    return written // CHARACTERS_PER_TOKEN


class Budget:
    """What an attempt has left. Steps and tokens are read off its history, so that a resumed attempt goes on where it stood."""

    def __init__(self, limits: Limits, *, elapsed_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = now
        self._elapsed_s = elapsed_s
        self._running_since: float | None = None

    @property
    def elapsed_s(self) -> float:
        running_s = 0.0 if self._running_since is None else self._now() - self._running_since
        return self._elapsed_s + running_s

    @property
    def seconds_left(self) -> float:
        return self._limits.seconds - self.elapsed_s

    def tokens_left(self, history: Sequence[Message]) -> int:
        return self._limits.tokens - tokens_in(history)

    @contextmanager
    def running(self) -> Generator[None]:
        """The time in here counts."""
        self._running_since = self._now()
        try:
            yield
        finally:
            self._elapsed_s, self._running_since = self.elapsed_s, None

    def leave_out(self, seconds: float) -> None:
        """Time that does not count: the engine was down."""
        self._elapsed_s -= seconds

    def reached(self, history: Sequence[Message]) -> LimitReached | None:
        if steps_in(history) >= self._limits.steps:
            return LimitReached(limit="steps", message=f"{self._limits.steps} steps are used up")
        if self.tokens_left(history) <= 0:
            return LimitReached(limit="tokens", message=f"{self._limits.tokens:,} output tokens are used up")
        if self.seconds_left <= 0:
            return self.out_of_time()
        return None

    def out_of_time(self) -> LimitReached:
        return LimitReached(limit="seconds", message=f"{self._limits.seconds:,.0f} seconds are used up")
