"""A home whose station is down, read-only: the same documents as `orchestrator.client`, straight from the store and the hubs."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.events import Event
from orchestrator.home import Home
from orchestrator.views import DiffDocument, LogDocument, Snapshot, StatusDocument, TaskDetail, TaskRow


class OfflineReader:
    """Never writes; UserError when there is no home at that path. `snapshot().station.pid` is 0: nobody runs."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def status(self) -> StatusDocument:
        raise NotImplementedError

    def snapshot(self, after: int = 0) -> Snapshot:
        raise NotImplementedError

    def tasks(self) -> list[TaskRow]:
        raise NotImplementedError

    def task(self, task: str) -> TaskDetail:
        raise NotImplementedError

    def log(self, task: str, *, attempt: int | None = None, step: int | None = None) -> LogDocument:
        raise NotImplementedError

    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument:
        raise NotImplementedError

    def events(self, after: int = 0, *, task: str | None = None, follow: bool = False) -> Iterator[Event]:
        """`follow` is refused: nothing will happen while the station is down."""
        raise NotImplementedError


def open_reader(home: Home) -> OfflineReader:
    raise NotImplementedError
