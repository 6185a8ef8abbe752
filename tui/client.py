"""The station as the dashboard sees it, and the threads that talk to it: no blocking call ever runs in the UI's loop."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
from textual.message import Message

from orchestrator.errors import UserError
from orchestrator.views import DiffDocument, LogDocument, MergeView, Snapshot, TaskDetail, TaskRow

POLL_S = 0.25
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0)


class Station(Protocol):
    """What the dashboard asks of a station. All calls block; StationDown when it does not answer, UserError when it refuses."""

    def snapshot(self, after: int = 0) -> Snapshot: ...
    def task(self, task: str) -> TaskDetail: ...
    def log(self, task: str, *, attempt: int | None = None, step: int | None = None) -> LogDocument: ...
    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument: ...
    def cancel(self, task: str) -> TaskRow: ...
    def retry(self, task: str, comment: str = "") -> TaskRow: ...
    def approve(self, task: str) -> TaskRow: ...
    def reject(self, task: str, comment: str = "") -> TaskRow: ...
    def merge(self, task: str) -> MergeView: ...
    def say(self, task: str, text: str) -> TaskRow: ...
    def look(self, task: str) -> TaskRow: ...


def open_station(home: Path | None) -> Station:
    """The station of a home (None: the default one). Does not connect yet."""
    from orchestrator.client import StationClient
    from orchestrator.home import Home

    return StationClient(Home.at(home))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a call gave nothing, for a person."""

    message: str
    hint: str = ""


def trouble_of(error: Exception) -> Trouble:
    if isinstance(error, UserError):
        return Trouble(message=str(error), hint=error.hint)
    if isinstance(error, msgspec.MsgspecError):
        return Trouble(message=f"the station's answer cannot be read: {error}", hint="is it of another version than this dashboard?")
    return Trouble(message=f"{type(error).__name__}: {error}")


# What a call to the station can end in, besides its result. Anything else is a bug of ours and must be seen.
EXPECTED = (UserError, OSError, msgspec.MsgspecError)


class Lane:
    """One daemon thread that makes calls one after the other, at most `depth` of them waiting.

    Daemon, so that a station that hangs cannot hold up the end of the dashboard.
    """

    def __init__(self, name: str, *, depth: int, newest_wins: bool = False) -> None:
        self._name = name
        self._depth = depth
        self._newest_wins = newest_wins
        self._calls: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def start(self) -> None:
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def submit(self, call: Callable[[], None]) -> bool:
        """Queue a call. When the lane is full: with `newest_wins` the oldest one is dropped, otherwise this one, with False."""
        with self._changed:
            if len(self._calls) >= self._depth:
                if not self._newest_wins:
                    return False
                self._calls.popleft()
            self._calls.append(call)
            self._changed.notify()
            return True

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._calls.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._calls)
                if self._closed:
                    return
                call = self._calls.popleft()
            call()


@dataclass
class SnapshotArrived(Message):
    """`taken` must be set once it is folded in: only then the next one is asked for, so that none pile up."""

    snapshot: Snapshot
    taken: threading.Event


@dataclass
class StationLost(Message):
    """No snapshot came; the next try is after `wait_s`."""

    trouble: Trouble
    wait_s: float


class Feed:
    """A daemon thread that asks for snapshots, each after the one before, with back-off while the station is silent."""

    def __init__(
        self, station: Station, post: Callable[[Message], object], *, poll_s: float = POLL_S, back_off_s: tuple[float, ...] = BACK_OFF_S
    ) -> None:
        self._station = station
        self._post = post
        self._poll_s = poll_s
        self._back_off_s = back_off_s
        self._stop = threading.Event()
        self._after = 0

    def start(self) -> None:
        threading.Thread(target=self._work, name="snapshots", daemon=True).start()

    def go_on_after(self, seq: int) -> None:
        """Ask next for what came after `seq`. To be called before `taken` is set."""
        self._after = seq

    def close(self) -> None:
        self._stop.set()

    def _work(self) -> None:
        failures = 0
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                self._deliver(self._station.snapshot(self._after))
                failures = 0
                wait_s = max(0.0, self._poll_s - (time.monotonic() - started))
            except EXPECTED as error:
                wait_s = self._back_off_s[min(failures, len(self._back_off_s) - 1)]
                failures += 1
                self._post(StationLost(trouble_of(error), wait_s))
            self._stop.wait(wait_s)

    def _deliver(self, snapshot: Snapshot) -> None:
        taken = threading.Event()
        self._post(SnapshotArrived(snapshot, taken))
        while not taken.wait(0.2) and not self._stop.is_set():
            pass
