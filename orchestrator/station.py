"""The station's process: `python -m orchestrator.station --home DIR [--options JSON]`.

`up --foreground` calls `main(home, options)`; `up`, `run` and `demo` start this module detached (see `orchestrator.launch.spawn_station`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import logging.handlers
import os
import resource
import secrets
import signal
import sys
from collections.abc import Coroutine, Sequence

import msgspec

from orchestrator import lookups
from orchestrator.api import make_app
from orchestrator.bus import Bus
from orchestrator.clock import Clock, SystemClock
from orchestrator.config import SETTING, Settings, settle
from orchestrator.endpoint import SERVER_COUNT, Endpoint
from orchestrator.engine_child import EngineChild
from orchestrator.errors import UserError
from orchestrator.eventlog import Journal
from orchestrator.events import Event, StationStarted, StationStopped
from orchestrator.home import Home
from orchestrator.launch import StationOptions, hold_lock
from orchestrator.leftovers import end_leftovers
from orchestrator.live_rows import RowBook
from orchestrator.merge_queue import MergeQueue
from orchestrator.metrics import SAMPLE_S, LiveAttempt, ServerCount, TokenBook, Tokens
from orchestrator.queue.decisions import Decisions
from orchestrator.queue.merge_records import Merges
from orchestrator.queue.queue import Claim, Queue
from orchestrator.runner import LocalRunner
from orchestrator.scheduler import Scheduler
from orchestrator.server import ApiServer, listening
from orchestrator.service import StationService
from orchestrator.store import Store, StoreFull
from orchestrator.version import version
from orchestrator.worker import Site, run_attempt
from workspaces.clone import remove_tree

log = logging.getLogger(__name__)

CREATING = 4
"""Workspaces made at once: more do not come faster from one disk."""
LOG_BYTES = 8 << 20
STOP_S = 7.0
OPEN_FILES = 65_536


def _allow_open_files() -> None:
    """Hundreds of streams are open here, and git, which inherits this, holds a folder open for each level.

    Not without bound, though: there are programs that close every number up to the limit when they start.
    """
    granted, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(granted, OPEN_FILES if most == resource.RLIM_INFINITY else min(most, OPEN_FILES))
    with contextlib.suppress(OSError, ValueError):  # macOS names a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def main(home: Home, options: StationOptions) -> int:
    """Run a station in the foreground until SIGTERM, SIGINT or `POST /v1/stop`. The exit status (0, or 1 after a fatal error).

    UserError when another station holds this home's lock.
    """
    import uvloop

    home.ensure()
    _allow_open_files()
    with hold_lock(home):
        _log_to(home)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(home, options))
        except UserError:
            raise
        except Exception:
            log.critical("the station ends: it cannot go on", exc_info=True)
            return 1
    return 0


async def _serve(home: Home, options: StationOptions) -> None:
    async with await Store.open(home.database) as store:
        station = await Station.open(home, options, store=store, clock=SystemClock())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, station.stop)
        await station.run()


class Station:
    """All parts of a station, wired; `run` is its life."""

    def __init__(self, home: Home, settings: Settings, *, store: Store, clock: Clock, spent: Tokens, server: ServerCount) -> None:
        self._home = home
        self._store = store
        self._clock = clock
        self._stopping = asyncio.Event()
        # An incarnation's name is never used again: what another one holds is an orphan.
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._bus = Bus()
        self._book = TokenBook(spent)
        self._rows = RowBook(store, self._book, waiting_for=lambda: self._scheduler.waiting_for)
        self._journal = journal = Journal(store, clock, self._publish)
        self._queue = Queue(journal)
        self._merging = MergeQueue(store, Merges(journal), hubs=home.hubs)
        self._endpoint = Endpoint(
            settings,
            api_key=os.environ.get(settings.api_key_env) if settings.api_key_env else None,
            clock=clock,
            journal=journal,
            server=server,
            counted=lambda: self._book.total().output,
            changed=lambda: self._scheduler.nudge(),
            full=lambda: self._scheduler.store_full(),
        )
        self._engine = self._engine_child(settings)
        self._site = Site(
            home=home,
            path=os.environ.get("PATH", os.defpath),
            clock=clock,
            store=store,
            queue=self._queue,
            endpoint=self._endpoint,
            creating=asyncio.Semaphore(CREATING),
            checking=asyncio.Semaphore(os.cpu_count() or 1),
        )
        self._runner = LocalRunner(
            self._work,
            queue=self._queue,
            book=self._book,
            clock=clock,
            ended=self._attempt_ended,
            full=lambda: self._scheduler.store_full(),
        )
        self._scheduler = Scheduler(
            home=home,
            store=store,
            queue=self._queue,
            runner=self._runner,
            clock=clock,
            owner=self._owner,
            agents=settings.agents,
            engine_problem=lambda: self._endpoint.problem,
        )
        self._service = StationService(
            home=home,
            store=store,
            bus=self._bus,
            queue=self._queue,
            decisions=Decisions(journal),
            merging=self._merging,
            rows=self._rows,
            book=self._book,
            endpoint=self._endpoint,
            scheduler=self._scheduler,
            runner=self._runner,
            agents=settings.agents,
            started_at=clock.time(),
            request_stop=self.stop,
        )

    @classmethod
    async def open(cls, home: Home, options: StationOptions, *, store: Store, clock: Clock) -> Station:
        """A station on this home, its former life reconciled. UserError for options that cannot be meant."""
        stored, count, sums = await store.read(
            lambda db: (lookups.setting(db, SETTING), lookups.setting(db, SERVER_COUNT), lookups.totals(db))
        )
        settings = settle(stored, options)
        spent = Tokens(input=sums.input_tokens, cached=sums.cached_tokens, output=sums.output_tokens)
        server = msgspec.json.decode(count, type=ServerCount) if count is not None else ServerCount()
        station = cls(home, settings, store=store, clock=clock, spent=spent, server=server)
        await station._reconcile(settings)
        return station

    async def _reconcile(self, settings: Settings) -> None:
        """Store the settings, and bring what former incarnations left under way to where it can go on."""
        await self._journal.remember(SETTING, msgspec.Raw(msgspec.json.encode(settings)))
        if ended := await asyncio.to_thread(end_leftovers, self._home.workspaces, self._home.checks):
            log.warning("ended %d commands that an earlier incarnation left running", len(ended))
        for left in list(self._home.checks.iterdir()):
            await asyncio.to_thread(remove_tree, left)
        await self._merging.recover()
        orphans = await self._queue.interrupt_orphans(self._owner)
        if orphans:
            log.info("tasks of an earlier incarnation go on: %s", ", ".join(orphans))

    def _engine_child(self, settings: Settings) -> EngineChild | None:
        if settings.engine == "remote":
            self._endpoint.point_to(settings.endpoint, fresh=False)
        if settings.engine != "simulated":
            return None
        return EngineChild(
            settings, clock=self._clock, ready=lambda url: self._endpoint.point_to(url, fresh=True), lost=self._endpoint.lost
        )

    def stop(self) -> None:
        """Begin a planned stop; `run` returns when it is done."""
        self._stopping.set()

    async def run(self) -> None:
        """Until `stop`, or until something fails that a station cannot get over: then that is raised."""
        token = self._home.read_token()
        assert token is not None, "Home.ensure makes one"
        with listening(self._home.place_socket()) as listener:
            server = ApiServer(make_app(self._service, token), listener)
            await self._journal.log(StationStarted(pid=os.getpid(), version=version()))
            log.info("station %s, home %s, pid %d", version(), self._home.path, os.getpid())
            async with asyncio.TaskGroup() as group:
                group.create_task(server.run())
                services = [group.create_task(service) for service in self._services()]
                await self._stopping.wait()
                await self._end_work()
                server.close()
                for service in services:
                    service.cancel()

    def _services(self) -> Sequence[Coroutine[None, None, None]]:
        engine = [self._engine.run()] if self._engine is not None else []
        return [*engine, self._endpoint.watch(), self._runner.run(), self._scheduler.run(), self._merging.run(), self._sample()]

    async def _end_work(self) -> None:
        """Nothing new starts, attempts end here and go on at the next start, merges under way land."""
        log.info("stopping: %d attempts are interrupted and go on at the next start", self._runner.at_work)
        self._scheduler.close()
        try:
            async with asyncio.timeout(STOP_S):
                await self._merging.close()
                await self._runner.stop_all()
        except TimeoutError:
            log.warning("work is not ended after %.0f s; it is left to the next start", STOP_S)
        try:
            await self._queue.release_all(self._owner)
            await self._journal.log(StationStopped())
        except StoreFull:
            log.warning("no room to write the stop down; the next start finds the attempts as a crash would have left them")
        self._bus.close()

    def _publish(self, events: Sequence[Event]) -> None:
        self._rows.publish(events)
        self._bus.publish(events)

    async def _work(self, claim: Claim, live: LiveAttempt) -> None:
        await run_attempt(self._site, claim, live)

    def _attempt_ended(self) -> None:
        self._endpoint.look()
        self._scheduler.nudge()

    async def _sample(self) -> None:
        while True:
            self._book.sample(self._clock.monotonic())
            await self._clock.sleep(SAMPLE_S)


def _log_to(home: Home) -> None:
    handler = logging.handlers.RotatingFileHandler(home.log, maxBytes=LOG_BYTES, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for chatty in ("httpx2", "httpx", "openai", "uvicorn"):  # a line per request of theirs would drown ours
        logging.getLogger(chatty).setLevel(logging.WARNING)
    home.log.chmod(0o600)


def _from_command_line(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.station")
    parser.add_argument("--home", required=True)
    parser.add_argument("--options", default="{}", help="StationOptions as JSON")
    told = parser.parse_args(argv)
    try:
        return main(Home.at(told.home), msgspec.json.decode(told.options, type=StationOptions))
    except UserError as refused:
        sys.stderr.write(f"error: {refused}\n" + (f"\nhint: {refused.hint}\n" if refused.hint else ""))
        return 2


if __name__ == "__main__":
    sys.exit(_from_command_line(sys.argv[1:]))
