"""What the dashboard knows: a pure fold of the station's snapshots, and the questions that screens ask of it.

Times named `now` and `*_at` are seconds of one monotonic clock of ours; the station's own clock is used for nothing but its ages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.task import ACTIVE, REVIEWABLE, State
from orchestrator.views import EngineView, Snapshot, StationView, TaskRow, Totals

STALE_S = 3.0
HISTORY_S = 600.0
SAMPLE_S = 1.0

Group = Literal["working", "human", "review", "waiting", "done"]
GROUPS: tuple[Group, ...] = ("human", "working", "review", "waiting", "done")
"""In the order of the list: what only a person can move, what moves, what is ready, what waits, what is over."""

STUCK: frozenset[State] = frozenset({"stuck", "failed", "conflicted", "quarantined"})
WAITING: frozenset[State] = frozenset({"queued", "interrupted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A row and when it came: its ages count on from there."""

    row: TaskRow
    at: float
    place: int
    """Rank in the order in which tasks were first seen, which is that of their submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The station has not answered since `since` (monotonic) and `clock` (epoch, for people)."""

    since: float
    clock: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at: float
    tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Everything on the screens. `received_at` is None before the first snapshot."""

    seq: int = 0
    received_at: float | None = None
    station: StationView | None = None
    engine: EngineView | None = None
    queue: Mapping[str, int] | None = None
    totals: Totals | None = None
    tasks: Mapping[str, Seen] = field(default_factory=dict[str, Seen])
    samples: tuple[Sample, ...] = ()
    lost: Lost | None = None

    def row(self, task: str | None) -> TaskRow | None:
        seen = self.tasks.get(task) if task is not None else None
        return seen.row if seen else None

    def age_s(self, now: float) -> float | None:
        """How old the numbers are; None when there are none."""
        return None if self.received_at is None else max(0.0, now - self.received_at)

    def stale(self, now: float) -> bool:
        """Whether the numbers may no longer be true: too old, or nobody there to renew them."""
        age_s = self.age_s(now)
        return self.lost is not None or age_s is None or age_s > STALE_S


def fold(model: Model, snapshot: Snapshot, now: float) -> Model:
    """The model after a snapshot.

    A sequence number that went back is another history (a home made anew): its rows replace ours.
    """
    fresh = snapshot.seq < model.seq
    tasks = {} if fresh else dict(model.tasks)
    for row in snapshot.tasks:
        known = tasks.get(row.id)
        tasks[row.id] = Seen(row=row, at=now, place=known.place if known else len(tasks))
    return replace(
        model,
        seq=snapshot.seq,
        received_at=now,
        station=snapshot.station,
        engine=snapshot.engine,
        queue=snapshot.queue,
        totals=snapshot.totals,
        tasks=tasks,
        samples=_sampled(model.samples, now, snapshot.totals.tokens_per_s),
        lost=None,
    )


def next_after(model: Model, snapshot: Snapshot) -> int:
    """The sequence number to ask after, once `snapshot` was folded into `model`.

    0, so all rows again, when the station is another process than before: nothing then rests on what its predecessor sent.
    """
    same = model.station is None or (model.station.pid, model.station.started_at) == (snapshot.station.pid, snapshot.station.started_at)
    return snapshot.seq if same and snapshot.seq >= model.seq else 0


def lose(model: Model, reason: str, *, now: float, clock: float) -> Model:
    """The model while the station does not answer. The first moment of silence stays."""
    since = model.lost or Lost(since=now, clock=clock, reason=reason)
    return replace(model, lost=replace(since, reason=reason))


def _sampled(samples: tuple[Sample, ...], now: float, tokens_per_s: float | None) -> tuple[Sample, ...]:
    """One sample a second, the newest value of each; gaps stay gaps."""
    new = Sample(at=now, tokens_per_s=tokens_per_s)
    if samples and now - samples[-1].at < SAMPLE_S:
        return (*samples[:-1], replace(new, at=samples[-1].at))
    kept = samples if not samples or samples[0].at >= now - HISTORY_S else tuple(s for s in samples if s.at >= now - HISTORY_S)
    return (*kept, new)


def chart(samples: tuple[Sample, ...], now: float, *, columns: int, span_s: float) -> list[float | None]:
    """The means of `span_s` seconds up to `now` in `columns` slots, oldest first; None where nothing was measured."""
    if columns <= 0:
        return []
    slots: list[list[float]] = [[] for _ in range(columns)]
    width_s = span_s / columns
    # Slots end on multiples of their width, so that a chart moves by whole columns and does not shimmer.
    newest = int(now // width_s)
    for sample in samples:
        slot = columns - 1 - (newest - int(sample.at // width_s))
        if sample.tokens_per_s is not None and 0 <= slot < columns:
            slots[slot].append(sample.tokens_per_s)
    return _bridged([sum(slot) / len(slot) if slot else None for slot in slots])


def _bridged(values: list[float | None]) -> list[float | None]:
    """A lone empty slot takes its left neighbour's value: a slot can be narrower than the time between two samples."""
    return [
        values[i - 1] if value is None and 0 < i < len(values) - 1 and values[i + 1] is not None else value
        for i, value in enumerate(values)
    ]


def group(row: TaskRow) -> Group:
    if row.state in STUCK:
        return "human"
    if row.state in ACTIVE:
        return "working"
    if row.state in REVIEWABLE:
        return "review"
    return "waiting" if row.state in WAITING else "done"


def needs_human(row: TaskRow) -> bool:
    return group(row) in {"human", "review"}


def urgent(model: Model, now: float) -> list[str]:
    """The tasks that need a person, the most urgent first: what cannot go on, then what is ready."""
    return [task for task in listed(model, Selection(), now) if needs_human(model.tasks[task].row)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    waiting: int
    working: int
    review: int
    failed: int
    done: int
    """Merged, rejected or cancelled."""

    @property
    def total(self) -> int:
        return self.waiting + self.working + self.review + self.failed + self.done


def counts(queue: Mapping[str, int] | None) -> Counts | None:
    """The queue in five numbers; None before the first snapshot."""
    if queue is None:
        return None
    total = sum(queue.values())

    def sum_of(states: frozenset[State]) -> int:
        return sum(queue.get(state, 0) for state in states)

    waiting, working, review, failed = sum_of(WAITING), sum_of(ACTIVE), sum_of(REVIEWABLE), sum_of(STUCK)
    return Counts(waiting=waiting, working=working, review=review, failed=failed, done=total - waiting - working - review - failed)


def state_age_s(seen: Seen, now: float) -> float:
    return seen.row.state_age_s + max(0.0, now - seen.at)


Order = Literal["state", "submitted", "id", "tokens", "tok/s", "diff", "age"]
ORDERS: tuple[Order, ...] = ("state", "submitted", "id", "tokens", "tok/s", "diff", "age")
Only = Literal["all", "waiting", "working", "review", "failed", "done"]
ONLY: tuple[Only, ...] = ("all", "waiting", "working", "review", "failed", "done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows are listed, and how."""

    text: str = ""
    only: Only = "all"
    order: Order = "state"


def listed(model: Model, selection: Selection, now: float) -> list[str]:
    """The ids to list. The order is total, so that rows with equal keys never swap places."""
    words = selection.text.casefold().split()
    shown = [seen for seen in model.tasks.values() if _wanted(seen.row, selection.only) and _matches(seen.row, words)]
    shown.sort(key=lambda seen: _sort_key(seen, selection.order, now))
    return [seen.row.id for seen in shown]


def _wanted(row: TaskRow, only: Only) -> bool:
    match only:
        case "all":
            return True
        case "failed":
            return row.state in STUCK
        case "working":
            return row.state in ACTIVE
        case "waiting" | "review" | "done":
            return group(row) == only


def _matches(row: TaskRow, words: list[str]) -> bool:
    if not words:
        return True
    text = f"{row.id} {row.title} {row.kind} {row.state} {row.activity or ''}".casefold()
    return all(word in text for word in words)


def _sort_key(seen: Seen, order: Order, now: float) -> tuple[float | str, int]:
    row = seen.row
    match order:
        case "state":
            return float(GROUPS.index(group(row))), seen.place
        case "submitted":
            return 0.0, seen.place
        case "id":
            return row.id, seen.place
        case "tokens":
            return -float(row.output_tokens or 0), seen.place
        case "tok/s":
            return -(row.tokens_per_s or 0.0), seen.place
        case "diff":
            return -float((row.insertions or 0) + (row.deletions or 0)), seen.place
        case "age":
            return -state_age_s(seen, now), seen.place


def next_in(tasks: list[str], current: str | None, wanted: set[str], *, step: int = 1) -> str | None:
    """The next (or, with step -1, previous) wanted task after the current one, round and round; None when there is none."""
    if not wanted.intersection(tasks):
        return None
    start = tasks.index(current) if current in tasks else (-1 if step > 0 else 0)
    return next(task for i in range(1, len(tasks) + 1) if (task := tasks[(start + step * i) % len(tasks)]) in wanted)
