"""The log of facts: a fact is stored in the same transaction as the state it describes, and sent to watchers after the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from orchestrator.clock import Clock
from orchestrator.events import AnyFact, Event
from orchestrator.store import Database, Store

T = TypeVar("T")
Publish: TypeAlias = Callable[[Sequence[Event]], None]


class Transaction:
    """One transaction: the database, the time that all its rows carry, and the facts it stores."""

    def __init__(self, db: Database, now: float) -> None:
        self.db = db
        self.now = now
        self.events: list[Event] = []

    def append(self, task: str | None, attempt: int | None, fact: AnyFact) -> Event:
        """Stores a fact. Text that no JSON can hold (lone surrogates) is replaced, long check output cut."""
        raise NotImplementedError


class Journal:
    """Where all writers of tasks meet: store, clock and watchers.

    `publish` gets the stored events on the event loop after each commit, in the order of their `seq`, exactly once each, also
    when the caller was cancelled between commit and return. It must neither block nor raise.
    """

    def __init__(self, store: Store, clock: Clock, publish: Publish = lambda _: None) -> None:
        self.store = store
        self.clock = clock
        self._publish = publish

    async def write(self, work: Callable[[Transaction], T]) -> T:
        raise NotImplementedError


def events_after(db: Database, after: int, *, task: str | None = None, limit: int = 500) -> list[Event]:
    """The next events in order, at most `limit`; an empty list means that there are none yet."""
    raise NotImplementedError


def last_seq(db: Database) -> int:
    """The newest event's number; 0 in a new home."""
    raise NotImplementedError
