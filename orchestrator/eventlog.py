"""The log of facts: a fact is stored in the same transaction as the state it describes, and sent to watchers after the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, cast

import msgspec

from orchestrator.clock import Clock
from orchestrator.events import AnyFact, CheckFinished, Event, StationFact
from orchestrator.store import Database, Store, row, rows

T = TypeVar("T")
Publish: TypeAlias = Callable[[Sequence[Event]], None]

OUTPUT_LIMIT = 8_000
"""Characters of a check's output that are kept: its tail, where the verdict stands."""

_fact_decoder: msgspec.json.Decoder[AnyFact] = msgspec.json.Decoder(AnyFact)


class Transaction:
    """One transaction: the database, the time that all its rows carry, and the facts it stores."""

    def __init__(self, db: Database, now: float) -> None:
        self.db = db
        self.now = now
        self.events: list[Event] = []

    def append(self, task: str | None, attempt: int | None, fact: AnyFact) -> AnyFact:
        """Stores a fact and gives it back as it was stored: text that JSON cannot hold replaced, long check output cut."""
        fact, encoded = _storable(fact)
        sql = "INSERT INTO event (at, task, attempt, type, fact) VALUES (?, ?, ?, ?, ?) RETURNING seq"
        stored = rows(self.db, sql, (self.now, task, attempt, fact.__struct_config__.tag, encoded))
        seq: int = stored[0]["seq"]
        if task is not None:
            self.db.execute("UPDATE task SET changed_seq = ? WHERE id = ?", (seq, task))
        self.events.append(Event(seq=seq, at=self.now, task=task, attempt=attempt, fact=fact))
        return fact


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
        """What `work` returns, run in one transaction of the store."""
        now = self.clock.time()

        def transaction(db: Database) -> tuple[T, list[Event]]:
            tx = Transaction(db, now)
            return work(tx), tx.events

        def committed(done: tuple[T, list[Event]]) -> None:
            if done[1]:
                self._publish(done[1])

        result, _ = await self.store.write(transaction, committed=committed)
        return result

    async def log(self, fact: StationFact) -> None:
        """Stores a fact of the station's own, which concerns no task (started, stopped, engine up or down)."""
        await self.write(lambda tx: tx.append(None, None, fact))

    async def remember(self, key: str, value: object) -> None:
        """Stores a setting as JSON (whatever msgspec encodes); `lookups.setting` gives it back."""
        encoded = msgspec.json.encode(value).decode()
        sql = "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        await self.write(lambda tx: rows(tx.db, sql, (key, encoded)))


def events_after(db: Database, after: int, *, task: str | None = None, limit: int = 500) -> list[Event]:
    """The next events in order, at most `limit`; an empty list means that there are none yet."""
    if task is None:
        found = rows(db, "SELECT * FROM event WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    else:
        found = rows(db, "SELECT * FROM event WHERE task = ? AND seq > ? ORDER BY seq LIMIT ?", (task, after, limit))
    return [
        Event(seq=it["seq"], at=it["at"], task=it["task"], attempt=it["attempt"], fact=_fact_decoder.decode(it["fact"])) for it in found
    ]


def last_seq(db: Database) -> int:
    """The newest event's number; 0 in a new home."""
    newest = row(db, "SELECT max(seq) FROM event")
    return (newest[0] or 0) if newest else 0


def storable_text(text: str) -> str:
    """The text with what neither JSON nor SQLite holds faithfully (lone surrogates, NUL) replaced by U+FFFD."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd") if _unstorable(text) else text


def _unstorable(text: str) -> bool:
    return "\x00" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text))


def _storable(fact: AnyFact) -> tuple[AnyFact, str]:
    if isinstance(fact, CheckFinished) and len(fact.output) > OUTPUT_LIMIT:
        cut = f"[… {len(fact.output) - OUTPUT_LIMIT} characters left out]\n"
        fact = msgspec.structs.replace(fact, output=cut + fact.output[-OUTPUT_LIMIT:])
    fields: dict[str, object] = msgspec.structs.asdict(fact)
    changes = {name: stored for name, value in fields.items() if (stored := _storable_value(value)) != value}
    if changes:
        fact = msgspec.structs.replace(fact, **changes)
    return fact, msgspec.json.encode(fact).decode()


def _storable_value(value: object) -> object:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, tuple):
        return tuple(_storable_value(item) for item in cast("tuple[object, ...]", value))
    return value
