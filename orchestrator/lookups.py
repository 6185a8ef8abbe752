"""Reads for the views: plain functions on a database, for `Store.read` and `open_readonly` alike.

What only a running station knows (rates, live text, waiting for capacity) is None here; the station fills it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from orchestrator.store import Database
from orchestrator.task import State, TaskSpec
from orchestrator.views import AttemptView, TaskDetail, TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTotals:
    """Sums over all attempts of the home. `cached_tokens` is None when no reply told. `max_parallel`: the most tasks in `running` at one moment."""

    input_tokens: int
    cached_tokens: int | None
    output_tokens: int
    max_parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    snapshot_commit: str
    at: float


def task_rows(db: Database, *, now: float, after: int = 0, states: Sequence[State] = ()) -> list[TaskRow]:
    """In the order of submission: tasks with an event after `after`, and all that are at work now (or only those in `states`, when given).

    `waiting_for` names the dependency or the back-off that a queued or interrupted task waits for, and is None when it only waits for capacity.
    A waiting reason can change without an event of its own task: a client that shows it asks for `after=0` now and then, or watches the other task.
    """
    raise NotImplementedError


def task_row(db: Database, task: str, *, now: float) -> TaskRow:
    """UserError when there is no such task (with the nearest id as a hint)."""
    raise NotImplementedError


def task_detail(db: Database, task: str, *, now: float) -> TaskDetail:
    """The same with prompt, attempts, checks with output (of the newest attempt), notes and comments. UserError when there is none."""
    raise NotImplementedError


def task_spec(db: Database, task: str) -> TaskSpec:
    """UserError when there is no such task."""
    raise NotImplementedError


def attempt(db: Database, task: str, number: int | None = None) -> AttemptView | None:
    """The attempt of that number, or the newest; None when it was never claimed. UserError when there is no such task."""
    raise NotImplementedError


def queue_counts(db: Database) -> dict[str, int]:
    """Tasks per state; states without tasks are left out."""
    raise NotImplementedError


def totals(db: Database) -> TokenTotals:
    raise NotImplementedError


def last_look(db: Database, task: str) -> Look | None:
    raise NotImplementedError


def next_start(db: Database, *, now: float) -> float | None:
    """When the earliest back-off ends (seconds since the epoch); None when no task is in back-off: the scheduler sleeps until then."""
    raise NotImplementedError


def claimable(db: Database, *, now: float) -> int:
    """How many tasks could start now if there were room for all."""
    raise NotImplementedError


def setting(db: Database, key: str) -> msgspec.Raw | None:
    """The JSON that `Queue.remember` stored; None when it never did."""
    raise NotImplementedError
