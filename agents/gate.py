"""One gate per endpoint, so that hundreds of agents do not storm an engine that is down or asks for patience."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
"""A server's wish to be left alone for longer is not followed: nobody would notice when it is back."""
PROBE_S = 2.0
"""While closed, at most one request goes through in this time."""


class Gate:
    """Open while the endpoint answers. A refusal closes it for a growing, jittered time; after that one request at a time goes
    through, until one of them is answered. Times in seconds.

    Those who wait wake at jittered times of their own, so the return of an engine is not a stampede either.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`jitter` gives numbers from 0 to 1."""
        self._now = now
        self._sleep = sleep
        self._jitter = jitter
        self._refusals = 0
        self._reopens_at = 0.0
        self._probing = False
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why it is closed, '' while it is open."""
        return self._reason

    def wait_s(self) -> float:
        """How long the next one to pass would wait at least, 0 while the gate is open."""
        return max(0.0, self._reopens_at - self._now()) if self._refusals else 0.0

    async def passage(self) -> None:
        """Returns once the endpoint may be asked."""
        while (wait_s := self.wait_s()) > 0:
            await self._sleep(wait_s + self._jitter() * min(1.0, wait_s))
        if self._refusals:
            self._probing = True
            self._reopens_at = self._now() + PROBE_S

    async def rest(self, seconds: float) -> None:
        """A jittered pause by this gate's clock, for one who asks again on its own account."""
        await self._sleep(seconds * (0.75 + 0.5 * self._jitter()))

    def refused(self, reason: str, *, retry_after_s: float | None = None) -> None:
        """The endpoint could not be reached or asked for patience. `retry_after_s` is a floor, up to `LONGEST_RETRY_AFTER_S`."""
        now = self._now()
        if self._refusals == 0 or self._probing:  # the many that were under way when it closed are one refusal, not many
            self._refusals += 1
            self._probing = False
            self._reopens_at = now
        backoff_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self._refusals - 1, 10)) * (0.75 + 0.5 * self._jitter())
        wished_s = min(retry_after_s or 0.0, LONGEST_RETRY_AFTER_S)
        self._reopens_at = max(self._reopens_at, now + max(backoff_s, wished_s))
        self._reason = reason

    def answered(self) -> None:
        """The endpoint answered: open for all."""
        self._refusals = 0
        self._probing = False
        self._reason = ""
