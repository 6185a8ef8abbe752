"""Sends stored events on to whoever follows. A follower that does not keep up is cut off; it never slows the station."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from orchestrator.events import Event

BACKLOG_EVENTS = 4_096


class FellBehind(Exception):
    """This follower's backlog is full, or the bus is closed: read on from the store, after the last event received."""


class Follower:
    """One reader's backlog, in the order of `seq`."""

    def __init__(self, backlog: int) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(backlog)
        self._cut = False

    def offer(self, event: Event) -> None:
        if self._cut:
            return
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.cut()

    def cut(self) -> None:
        """End this follower: what waits is dropped, and whoever waits in `next` wakes up."""
        self._cut = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    async def next(self) -> list[Event]:
        """Everything that has come since the last call, one event at least. Raises FellBehind."""
        first = await self._queue.get()
        events = [first] if first is not None else []
        while not self._queue.empty():
            more = self._queue.get_nowait()
            if more is not None:
                events.append(more)
        if self._cut:
            raise FellBehind
        return events


class Bus:
    """`publish` is called with events that the store holds already."""

    def __init__(self, *, backlog: int = BACKLOG_EVENTS) -> None:
        self._followers: set[Follower] = set()
        self._backlog = backlog
        self._closed = False

    def publish(self, events: Sequence[Event]) -> None:
        for follower in self._followers:
            for event in events:
                follower.offer(event)

    def close(self) -> None:
        """The station stops: every follower ends."""
        self._closed = True
        for follower in self._followers:
            follower.cut()

    @contextmanager
    def follow(self) -> Generator[Follower]:
        follower = Follower(self._backlog)
        if self._closed:
            follower.cut()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
