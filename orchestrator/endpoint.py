"""The one endpoint that all agents of this station use: whether it answers, what its metrics say, and the client for it.

Covers: an endpoint may be anyone's, or be no engine at all. Whatever it sends, or fails to send, is at worst a problem that is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from agents.address import api_base
from agents.connection import unreached
from agents.errors import ModelRejected, ModelUnavailable
from agents.model import ModelInfo, OpenAIModel
from orchestrator.clock import Clock
from orchestrator.config import Settings
from orchestrator.eventlog import Journal
from orchestrator.events import EngineDown, EngineUp
from orchestrator.metrics import ServerCount
from orchestrator.serving.prometheus import EngineMetrics
from orchestrator.serving.scrape import MetricsTooLong, scrape
from orchestrator.store import StoreFull
from orchestrator.views import EngineView

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

POLL_S = 1.0
METRICS_S = 5.0
INFO_S = 15.0
"""How long the list of models may take; the first time the client's own import is in it."""
INFO_EVERY_S = 30.0
"""Where there are no metrics, the list of models is what tells whether the engine lives."""
FRESH_S = 3 * POLL_S
PROBLEM_CHARACTERS = 300
SERVER_COUNT = "server-count"


class Endpoint:
    """`counted` gives the agents' output tokens, taken down at each reading so that the two counts can be compared; `changed` is called when health turns, `full` when the store had no room."""

    def __init__(
        self,
        settings: Settings,
        *,
        api_key: str | None,
        clock: Clock,
        journal: Journal,
        server: ServerCount,
        counted: Callable[[], int],
        changed: Callable[[], None],
        full: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._api_key = api_key
        self._clock = clock
        self._journal = journal
        self._counted = counted
        self._changed = changed
        self._full = full
        self._look_now = asyncio.Event()
        self._ended = ""
        """The problem, while the station knows that its engine does not run: whoever answers at its address then is a stranger."""
        self._read_at: float | None = None
        self._info_at: float | None = None
        self._has_metrics = True
        self._stored_count = b""
        self._models = contextlib.AsyncExitStack()
        self.server = server
        self.counted_at_reading: int | None = None
        self.url: str | None = None
        self.model: OpenAIModel | None = None
        self.info: ModelInfo | None = None
        self.metrics: EngineMetrics | None = None
        self.problem: str | None = (
            "starting" if settings.engine == "simulated" else "none is configured (`stationmaster up` with an endpoint)"
        )
        """What keeps agents from using it, in one short line; None when it answers."""

    def point_to(self, url: str, *, fresh: bool) -> None:
        """Use this engine from now on; `fresh` when the station has just started it itself. `url` is one that `agents.address` takes."""
        base = api_base(url)
        if fresh or base != self.server.url:
            self.server.new_engine(fresh=fresh, counted=self._counted())
            self.counted_at_reading = self._counted() if fresh else None
        if self.model is None:
            self.model = OpenAIModel(base, model=self._settings.model or None, api_key=self._api_key, unserved=self.works_on_nothing)
            self._models.push_async_callback(self.model.close)
        else:
            self.model.move_to(base)  # not another one: agents that wait for the engine hold this
        self.server.url = self.url = base
        self.info, self._info_at, self._has_metrics = None, None, True
        self.problem, self._ended = "starting", ""
        self.look()

    def lost(self, reason: str) -> None:
        """The engine's process has ended."""
        self.problem = self._ended = f"down ({reason})"
        self.look()

    def look(self) -> None:
        """Read the metrics soon, not only when the second is over."""
        self._look_now.set()

    async def watch(self) -> None:
        """Until cancelled: look at the engine about once a second and store when its health turns."""
        import aiohttp

        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        was_healthy: bool | None = None
        async with self._models, aiohttp.ClientSession(headers=headers) as session:
            while True:
                if self.model is not None:
                    try:
                        problem = self._ended or await self._probe(session, self.model)
                        self.problem = self._ended or problem
                        await self._store_count()
                        was_healthy = await self._tell(was_healthy)
                    except StoreFull:  # the reading stands; it is stored with the next one
                        self._full()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._look_now.wait()
                self._look_now.clear()

    async def _tell(self, was_healthy: bool | None) -> bool:
        healthy = self.problem is None
        if healthy == was_healthy:
            return healthy
        url = self.url or ""
        if healthy:
            await self._journal.log(EngineUp(url=url, model=self.info.model if self.info else ""))
        elif was_healthy is not None:
            await self._journal.log(EngineDown(url=url, reason=self.problem or ""))
        log.info("engine %s: %s", url, self.problem or "ok")
        self._changed()
        return healthy

    async def _probe(self, session: aiohttp.ClientSession, model: OpenAIModel) -> str | None:
        """What is wrong with the engine, None when nothing is."""
        import aiohttp

        try:
            if self._info_is_due():
                async with asyncio.timeout(INFO_S):
                    info = await model.info()
                self.info, self._info_at = info, self._clock.monotonic()
            if self._has_metrics:
                counted = self._counted()  # before the engine is asked: what agents have received by now, it has counted
                self._take(await scrape(session, model.url, timeout_s=METRICS_S), counted)
        except ModelRejected as refused:
            return f"refuses us: {refused}"[:PROBLEM_CHARACTERS]
        except (ModelUnavailable, MetricsTooLong, aiohttp.ClientError, TimeoutError, OSError) as silent:
            reason = unreached(silent, model.url) or str(silent) or type(silent).__name__
            return f"does not answer ({reason})"[:PROBLEM_CHARACTERS]
        except Exception as odd:
            # Made by what a stranger sent: a fault of ours it may be, but no reason to end all agents.
            log.warning("engine %s cannot be read", model.url, exc_info=True)
            return f"cannot be read ({type(odd).__name__}: {odd})"[:PROBLEM_CHARACTERS]
        return None

    def _info_is_due(self) -> bool:
        """After an unhealthy phase it may be another process with another model."""
        if self._info_at is None or self.problem is not None:
            return True
        return not self._has_metrics and self._clock.monotonic() - self._info_at >= INFO_EVERY_S

    def _take(self, reading: EngineMetrics | None, counted: int) -> None:
        if reading is None:
            self._has_metrics = False
            return
        self.metrics, self._read_at, self.counted_at_reading = reading, self._clock.monotonic(), counted
        if reading.output_tokens is None:
            return
        if self.server.see(reading.output_tokens, counted=counted):
            self._info_at = None

    async def _store_count(self) -> None:
        encoded = msgspec.json.encode(self.server)
        if encoded != self._stored_count:
            await self._journal.remember(SERVER_COUNT, msgspec.Raw(encoded))
            self._stored_count = encoded

    def works_on_nothing(self) -> bool:
        """By a reading of these seconds. False when there is none: not known is not idle."""
        if self.metrics is None or self._read_at is None or self._clock.monotonic() - self._read_at > FRESH_S:
            return False
        return self.metrics.running == 0 and self.metrics.waiting == 0

    def view(self) -> EngineView | None:
        """None when no endpoint is configured."""
        if self._settings.engine == "none":
            return None
        read = self.metrics or EngineMetrics()
        return EngineView(
            url=self.url or self._settings.endpoint,
            simulated=self._settings.engine == "simulated" or (self.info is not None and self.info.simulated),
            child=self._settings.engine == "simulated",
            model=self.info.model if self.info else None,
            healthy=self.problem is None,
            message=self.problem or "ok",
            age_s=None if self._read_at is None else self._clock.monotonic() - self._read_at,
            max_model_len=self.info.max_model_len if self.info else None,
            running=read.running,
            waiting=read.waiting,
            kv_cache_usage=read.kv_cache_usage,
            output_tokens=self.server.output_tokens,
        )
