"""The one endpoint that all agents of this station use: whether it answers, what its metrics say, and the client for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from agents.errors import ModelRejected, ModelUnavailable
from agents.model import ModelInfo, OpenAIModel, discover
from orchestrator.clock import Clock
from orchestrator.config import Settings
from orchestrator.eventlog import Journal
from orchestrator.events import EngineDown, EngineUp
from orchestrator.metrics import ServerCount, Window
from orchestrator.serving.prometheus import EngineMetrics, parse_metrics
from orchestrator.store import StoreFull
from orchestrator.views import EngineView

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

POLL_S = 1.0
SLOW_S = 5.0
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
        self._read_at: float | None = None
        self._window = Window()
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
        """Use this engine from now on; `fresh` when the station has just started it itself."""
        root = url.rstrip("/").removesuffix("/v1")
        if fresh or root != self.server.url:
            self.server.new_engine(fresh=fresh)
        if self.url != root:
            self.model = None
        self.server.url = self.url = root
        self.info = None
        self.problem = "starting"
        self.look()

    def lost(self, reason: str) -> None:
        """The engine's process has ended."""
        self.problem = f"down ({reason})"
        self.look()

    def look(self) -> None:
        """Read the metrics soon, not only when the second is over."""
        self._look_now.set()

    async def watch(self) -> None:
        """Until cancelled: look at the engine about once a second and store when its health turns."""
        import aiohttp

        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        was_healthy: bool | None = None
        limit = aiohttp.ClientTimeout(total=SLOW_S)
        async with self._models, aiohttp.ClientSession(headers=headers, timeout=limit) as session:
            while True:
                if self.url is not None:
                    try:
                        self.problem = await self._probe(session, self.url)
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

    async def _probe(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """What is wrong with the engine, None when nothing is."""
        import aiohttp

        try:
            if self.info is None or not self._has_metrics:
                await self._discover(url)
            if self._has_metrics:
                await self._read_metrics(session, url)
        except ModelRejected as refused:
            return f"refuses us: {refused}"
        except (ModelUnavailable, aiohttp.ClientError, TimeoutError, OSError) as silent:
            return f"does not answer ({str(silent) or type(silent).__name__})"
        return None

    async def _discover(self, url: str) -> None:
        found = await discover(f"{url}/v1", api_key=self._api_key)
        if self._settings.model:
            found = msgspec.structs.replace(found, model=self._settings.model)
        self.info = found
        if self.model is None:
            self.model = await self._models.enter_async_context(OpenAIModel(f"{url}/v1", model=found.model, api_key=self._api_key))

    async def _read_metrics(self, session: aiohttp.ClientSession, url: str) -> None:
        async with session.get(f"{url}/metrics") as response:
            if response.status in {401, 403, 404, 405}:
                self._has_metrics = False
                return
            response.raise_for_status()
            body = await response.text()
        reading = parse_metrics(body)
        self.metrics, self._read_at, self.counted_at_reading = reading, self._clock.monotonic(), self._counted()
        if reading.output_tokens is not None:
            self.server.see(reading.output_tokens)
            self._window.add(self._read_at, reading.output_tokens)
            await self._store_count()

    async def _store_count(self) -> None:
        encoded = msgspec.json.encode(self.server)
        if encoded != self._stored_count:
            await self._journal.remember(SERVER_COUNT, msgspec.Raw(encoded))
            self._stored_count = encoded

    def view(self) -> EngineView | None:
        """None when no endpoint is configured."""
        if self._settings.engine == "none":
            return None
        read = self.metrics or EngineMetrics()
        return EngineView(
            url=self.url or self._settings.endpoint,
            simulated=self._settings.engine == "simulated",
            model=self.info.model if self.info else None,
            healthy=self.problem is None,
            message=self.problem or "ok",
            age_s=None if self._read_at is None else self._clock.monotonic() - self._read_at,
            max_model_len=self.info.max_model_len if self.info else None,
            running=read.running,
            waiting=read.waiting,
            kv_cache_usage=read.kv_cache_usage,
            output_tokens=self.server.output_tokens,
            output_tokens_per_s=self._window.rate() if self._read_at is not None else None,
        )
