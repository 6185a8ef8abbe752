"""A home whose station is down, read-only: the same documents as `orchestrator.client`, straight from the store and the hubs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from orchestrator import lookups
from orchestrator.config import SETTING, Settings, settle
from orchestrator.errors import UserError
from orchestrator.eventlog import events_after, last_seq
from orchestrator.events import Event
from orchestrator.home import Home
from orchestrator.launch import StationOptions, station_running
from orchestrator.store import Database, open_readonly
from orchestrator.version import version
from orchestrator.views import DiffDocument, LogDocument, Snapshot, StationView, StatusDocument, TaskDetail, TaskRow, Totals

PAGE_EVENTS = 500


class OfflineReader:
    """Never writes; UserError when there is no home at that path. `snapshot().station.pid` is 0: nobody runs."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def status(self) -> StatusDocument:
        """`running` when a station holds the home: then it is one that does not answer."""
        holder = station_running(self.home)
        with open_readonly(self.home.database) as db:
            return StatusDocument(
                running=holder is not None,
                pid=holder or None,
                socket=None,
                version=version(),
                agents=_settings(db).agents,
                queue=lookups.queue_counts(db),
                engine=None,
                home=str(self.home.path),
                totals=_totals(db),
                warning="" if holder is None else "the station does not answer; what stands here is from its files",
            )

    def snapshot(self, after: int = 0) -> Snapshot:
        now = time.time()
        with open_readonly(self.home.database) as db:
            station = StationView(
                pid=0,
                version=version(),
                home=str(self.home.path),
                started_at=0.0,
                agents=_settings(db).agents,
                warning="the station is down",
            )
            return Snapshot(
                seq=last_seq(db),
                at=now,
                station=station,
                engine=None,
                queue=lookups.queue_counts(db),
                totals=_totals(db),
                tasks=lookups.task_rows(db, now=now, after=after),
            )

    def settings(self) -> Settings:
        """How the next station of this home will work unless it is told otherwise."""
        with open_readonly(self.home.database) as db:
            return _settings(db)

    def tasks(self) -> list[TaskRow]:
        return self.snapshot().tasks

    def task(self, task: str) -> TaskDetail:
        with open_readonly(self.home.database) as db:
            return lookups.task_detail(db, task, now=time.time())

    def log(self, task: str, *, attempt: int | None = None, step: int | None = None) -> LogDocument:
        from orchestrator.trajectory_log import asked_attempt, log_document

        with open_readonly(self.home.database) as db:
            found = asked_attempt(db, task, attempt)
        return log_document(self.home, task, found, step)

    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument:
        """A target that moved since the hub last saw it counts as moved, with no conflicts known: finding them would write to the hub."""
        from orchestrator.review import diff_document, subject

        with open_readonly(self.home.database) as db:
            of = subject(db, task, since_last_look=since_last_look)
        hubs = self.home.hubs

        async def made(repo: str, commit: str) -> Hub:
            path = hub_path(Path(repo), hubs=hubs)
            if commit != of.spec.base_commit or not path.exists():
                raise WorkspaceError(
                    f"the hub of {repo} does not hold {commit[:12]}", hint=f"start the station: `stationmaster up{self.home.option()}`"
                )
            return Hub(path=path, repo=Path(repo))

        from workspaces.errors import WorkspaceError
        from workspaces.hub import Hub, hub_path

        try:
            return asyncio.run(diff_document(of, open_hub=made))
        except WorkspaceError as failed:
            raise UserError(str(failed), hint=failed.hint) from failed

    def last_seq(self) -> int:
        """The newest event's number; 0 in a new home."""
        with open_readonly(self.home.database) as db:
            return last_seq(db)

    def events(self, after: int = 0, *, task: str | None = None, follow: bool = False) -> Iterator[Event]:
        """`follow` is refused: nothing will happen while the station is down."""
        if follow:
            raise UserError(
                f"no station is running for {self.home.path}: there is nothing to follow",
                hint=f"start it with `stationmaster up{self.home.option()}`",
            )
        with open_readonly(self.home.database) as db:
            while page := events_after(db, after, task=task, limit=PAGE_EVENTS):
                yield from page
                after = page[-1].seq


def open_reader(home: Home) -> OfflineReader:
    """UserError when nothing was ever done in this home."""
    if not home.exists():
        raise UserError(f"there is no station's home at {home.path}", hint="`stationmaster up` makes one; --home DIR names another")
    return OfflineReader(home)


def _settings(db: Database) -> Settings:
    return settle(lookups.setting(db, SETTING), StationOptions())


def _totals(db: Database) -> Totals:
    sums = lookups.totals(db)
    return Totals(
        input_tokens=sums.input_tokens,
        cached_tokens=sums.cached_tokens,
        output_tokens=sums.output_tokens,
        server_output_tokens=None,
        unattributed_tokens=None,
        tokens_per_s=None,
        input_tokens_per_s=None,
        max_parallel=sums.max_parallel,
    )
