"""How long a client waits for an endpoint: all its limits of time in one place, and what keeps them while a reply streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

LOOK_S = 1.0
"""How often it is asked whether the engine works on anything."""
LOOKS = 5
"""So many answers in a row count: behind one address may be several engines, whose metrics come in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds.

    `connect_s`   for a connection.
    `wordless_s`  without anything that the model wrote, whatever else comes: queueing for the engine, prefill of a long prompt, or a server
                  that holds back a large argument and sends comments meanwhile. Also the longest wait for the answer's head.
    `idle_s`      without a whole line once the stream has begun: live servers that have nothing to say send comments, or the next token.
    `unserved_s`  before the first word, when the engine itself says, several times, that it works on nothing and that nobody waits.
    `grace_s`     in all, for the rest (usage, `[DONE]`) once the finish reason has come.
    """

    connect_s: float = 10.0
    wordless_s: float = 600.0
    idle_s: float = 120.0
    unserved_s: float = 30.0
    grace_s: float = 5.0


class Watch:
    """Wrap the reading of one reply in it and tell it of each piece: TimeoutError as soon as one of the limits is over, `reason` says which.

    `asked_at` is the event loop's time when the request was sent. `unserved` says whether the engine is known to work on nothing.
    """

    def __init__(self, patience: Patience, *, asked_at: float, unserved: Callable[[], bool]) -> None:
        self._patience = patience
        self._unserved = unserved
        self._loop = asyncio.get_running_loop()
        self._last_word = asked_at
        self._last_line: float | None = None
        self._has_words = False
        self._ends_at: float | None = None
        self._limit = asyncio.timeout_at(asked_at + patience.wordless_s)
        self._looks = 0
        self._look: asyncio.TimerHandle | None = self._loop.call_at(asked_at + patience.unserved_s, self._look_at_engine)
        self.reason = ""

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop_looking()
        if self._limit.expired() and not self.reason:
            self.reason = self._why()
        await self._limit.__aexit__(kind, error, trace)

    def heard(self, *, line: bool, words: bool, whole: bool) -> None:
        """A piece came: it ended a line, it held words of the model, with it the reply is `whole` (its finish reason is there)."""
        if self._ends_at is not None:
            return
        now, self.reason = self._loop.time(), ""
        if whole:
            self._stop_looking()
            self._ends_at = now + self._patience.grace_s
            self._limit.reschedule(self._ends_at)
            return
        if line or self._last_line is None:
            self._last_line = now
        if words:
            self._stop_looking()
            self._last_word = now
        self._limit.reschedule(min(self._last_line + self._patience.idle_s, self._last_word + self._patience.wordless_s))

    def _look_at_engine(self) -> None:
        if self._limit.expired():
            return
        self._looks = self._looks + 1 if self._unserved() else 0
        if self._looks >= LOOKS:
            self.reason = f"the engine works on nothing, and sent no word in {self._patience.unserved_s:g} s"
            self._limit.reschedule(self._loop.time())
        else:
            self._look = self._loop.call_later(LOOK_S, self._look_at_engine)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _why(self) -> str:
        patience = self._patience
        if self._ends_at is not None:
            return f"it did not end within {patience.grace_s:g} s of its finish reason"
        if self._last_line is not None and self._last_line + patience.idle_s <= self._last_word + patience.wordless_s:
            return f"it was silent for {patience.idle_s:g} s"
        return f"it held no word of the model for {patience.wordless_s:g} s"
