"""Follows a set of tasks to their end, by asking their station a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.events import ModelReplied
from orchestrator.cli.output import note, visible
from orchestrator.cli.reading import silent_station
from orchestrator.client import StationClient
from orchestrator.errors import StationDown
from orchestrator.events import Event, StateChanged, TaskAdded
from orchestrator.launch import station_running
from orchestrator.task import ENDED, LEASED, SATISFIED, WAITING
from orchestrator.views import EngineView, Snapshot, TaskRow, Totals

POLL_S = 0.4
# The engine's counter is read a few times a minute at least; a figure older than the last reply would show tokens as missing.
SETTLE_S = 6.0
PATIENCE_S = 900.0


@dataclass(slots=True)
class Tally:
    """A fold over the events since the tasks were queued. Times are seconds since the epoch."""

    tasks: frozenset[str]
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Output tokens by task, over all attempts; a reply without usage is in `uncounted`."""
    uncounted: int = 0
    others: bool = False
    """Some other task had a reply meanwhile: the engine's counter is not these tasks' alone."""
    max_parallel: int = 0
    began_at: float | None = None
    ended_at: float | None = None
    running: set[str] = field(default_factory=set[str])

    def take(self, event: Event) -> None:
        if event.task not in self.tasks:
            self.others = self.others or isinstance(event.fact, ModelReplied)
            return
        match event.fact:
            case TaskAdded():
                self.began_at = min(self.began_at or event.at, event.at)
            case ModelReplied(output_tokens=None):
                self.uncounted += 1
            case ModelReplied(output_tokens=int(tokens)):
                self.tokens[event.task] = self.tokens.get(event.task, 0) + tokens
            case StateChanged():
                self._state(event.task, event.fact, event.at)
            case _:
                pass

    def _state(self, task: str, change: StateChanged, at: float) -> None:
        if change.new == "running":
            self.running.add(task)
            self.max_parallel = max(self.max_parallel, len(self.running))
        else:
            self.running.discard(task)
        # What a person does with a task that has ended (review, merge) is no work of the agents.
        if change.new in ENDED and change.old in {*WAITING, *LEASED}:
            self.ended_at = at


class Watch:
    """What is known of the tasks so far. `before` is the home as it was before they were queued."""

    def __init__(self, client: StationClient, tasks: Sequence[str], before: Snapshot) -> None:
        self.client = client
        self.tasks = tuple(tasks)
        self.before = before
        self.now = before
        self.rows: dict[str, TaskRow] = {row.id: row for row in before.tasks}
        self.tally = Tally(frozenset(tasks))
        self._seq = before.seq

    @property
    def totals(self) -> Totals:
        return self.now.totals

    @property
    def engine(self) -> EngineView | None:
        return self.now.engine

    def poll(self) -> list[Event]:
        """Ask once. The events since the last time, of the whole home. StationDown when nobody answers."""
        self.now = self.client.snapshot(self.now.seq)
        self.rows.update({row.id: row for row in self.now.tasks})
        fresh = list(self.client.events(self._seq))
        for event in fresh:
            self._seq = event.seq
            self.tally.take(event)
        return fresh

    def wait(self, told: Callable[[list[Event]], None]) -> None:
        """Until every task has ended or cannot start any more; `told` gets what happened, a few times a second.

        A station that is there and does not answer is waited for, with a word, for `PATIENCE_S`. StationDown when there is none.
        """
        while True:
            told(self._patiently())
            if self.done():
                break
            time.sleep(POLL_S)
        self._settle()

    def _patiently(self) -> list[Event]:
        deadline, told = time.monotonic() + PATIENCE_S, False
        while True:
            try:
                fresh = self.poll()
            except StationDown:
                pid = station_running(self.client.home)
                if pid is None or time.monotonic() > deadline:
                    raise
                if not told:
                    note(f"warning: {visible(str(silent_station(self.client.home, pid)))}; waiting for it")
                told = True
            else:
                if told:
                    note("the station answers again")
                return fresh
            time.sleep(POLL_S)

    def done(self) -> bool:
        return all(task in self.rows and (self.rows[task].state in ENDED or self.cannot_start(task)) for task in self.tasks)

    def cannot_start(self, task: str) -> str | None:
        """The dependency that keeps a task from ever starting unless a person steps in; None when there is none."""
        return stuck_behind(task, self.rows)

    def _settle(self) -> None:
        """Wait until the engine's counter has been read after the last reply, or will not be. All is done by now: a station that goes is no failure."""
        ended, deadline = time.monotonic(), time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            try:
                self._patiently()
            except StationDown:
                return
            told = self.engine
            if told is None or told.output_tokens is None or (told.age_s is not None and told.age_s < time.monotonic() - ended):
                return
            time.sleep(POLL_S)


def stuck_behind(task: str, rows: Mapping[str, TaskRow]) -> str | None:
    """The task that has ended without success, or waits for a person, and before whose success `task` may not start."""
    seen: set[str] = set()
    ahead = [task]
    while ahead:
        row = rows.get(ahead.pop())
        if row is None or row.state not in WAITING:
            continue
        for one in row.after:
            before = rows.get(one)
            if before is not None and before.state in ENDED and before.state not in SATISFIED:
                return one
            if one not in seen:
                seen.add(one)
                ahead.append(one)
    return None
