"""The station's endpoint against real servers: engines, gateways without metrics, and things that are no engine at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from orchestrator.config import Settings, settle
from orchestrator.endpoint import INFO_EVERY_S, Endpoint
from orchestrator.errors import UserError
from orchestrator.events import EngineDown, EngineUp
from orchestrator.launch import StationOptions
from orchestrator.metrics import ServerCount


class Server:
    """Answers /v1/models with `models` and /metrics with `metrics` (None: 404); `asked` has every path in order."""

    def __init__(self) -> None:
        self.models: Any = [{"id": "first", "max_model_len": 1024}, {"id": "second", "max_model_len": 4096}]
        self.metrics: bytes | None = b"vllm:generation_tokens_total 5\n"
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.connections: set[object] = set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.connections.add(request.transport)
        self.asked.put_nowait(request.path)
        if request.path == "/v1/models":
            return web.json_response({"data": self.models})
        if request.path == "/metrics" and self.metrics is not None:
            return web.Response(body=self.metrics)
        return web.Response(status=404)

    async def until_asked(self, path: str) -> None:
        while await self.asked.get() != path:
            pass


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/v1"
    yield made
    await runner.cleanup()


class Watched:
    def __init__(self, endpoint: Endpoint, turned: asyncio.Queue[str | None]) -> None:
        self.endpoint = endpoint
        self._turned = turned

    async def turn(self) -> str | None:
        """The endpoint's problem when its health turns next."""
        async with asyncio.timeout(20):
            return await self._turned.get()


Watch = Callable[..., Awaitable[Watched]]


@pytest_asyncio.fixture
async def watch(desk: Any) -> AsyncIterator[Watch]:
    """Starts a watch over an endpoint; it is ended with the test, and must still be at work then."""
    tasks: list[asyncio.Task[None]] = []

    async def start(url: str, api_key: str | None = None, **settings: Any) -> Watched:
        turned: asyncio.Queue[str | None] = asyncio.Queue()
        endpoint = Endpoint(
            Settings(endpoint=url, **settings),
            api_key=api_key,
            clock=desk.clock,
            journal=desk.journal,
            server=ServerCount(),
            counted=lambda: 0,
            changed=lambda: turned.put_nowait(endpoint.problem),
            full=lambda: None,
        )
        endpoint.point_to(url, fresh=False)
        tasks.append(asyncio.ensure_future(endpoint.watch()))
        return Watched(endpoint, turned)

    yield start
    for task in tasks:
        assert not task.done(), task.exception()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("ending", ["/v1", "", "/", "/v1/"])
async def test_an_engine_is_found_however_its_url_is_written(server: Server, watch: Watch, ending: str) -> None:
    watched = await watch(server.url.removesuffix("/v1") + ending)
    assert await watched.turn() is None
    view = watched.endpoint.view()
    assert view is not None
    assert (view.url, view.model, view.max_model_len, view.healthy) == (server.url, "first", 1024, True)


@pytest.mark.parametrize(
    "metrics",
    [
        b"vllm:generation_tokens_total 5\n# caf\xe9 \xff\xfe\n",
        b"vllm:generation_tokens_total 1e300\nvllm:num_requests_running -4\n",
        b"\x00" * 100_000,
        "vllm:generation_tokens_total ٣\n".encode(),
    ],
)
async def test_metrics_that_no_engine_would_send_are_at_worst_unknown(server: Server, watch: Watch, metrics: bytes) -> None:
    server.metrics = metrics
    watched = await watch(server.url)
    assert await watched.turn() is None
    view = watched.endpoint.view()
    assert view is not None
    assert view.running is None


@pytest.mark.parametrize(
    ("metrics", "idle"),
    [
        (b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n", True),
        (b"vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n", False),
        (b"vllm:num_requests_running 0\nvllm:num_requests_waiting 1\n", False),
        (b"vllm:num_requests_running 0\n", False),
        (b"vllm:generation_tokens_total 5\n", False),
        (None, False),
    ],
)
async def test_an_engine_works_on_nothing_only_when_it_says_so(server: Server, watch: Watch, metrics: bytes | None, idle: bool) -> None:
    server.metrics = metrics
    watched = await watch(server.url)
    assert await watched.turn() is None
    assert watched.endpoint.works_on_nothing() is idle


async def test_an_old_reading_says_nothing_of_an_engine(server: Server, watch: Watch, desk: Any) -> None:
    server.metrics = b"vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
    watched = await watch(server.url)
    assert await watched.turn() is None
    await desk.clock.advance(60)
    assert not watched.endpoint.works_on_nothing()


async def test_metrics_without_end_are_a_problem_that_is_shown(server: Server, watch: Watch) -> None:
    server.metrics = b"x" * (9 << 20)
    assert "longer than 8 MiB" in (await (await watch(server.url)).turn() or "")


@pytest.mark.parametrize("models", [[{"id": "m\x00\x1b[2J" * 100_000}], "none", [{"name": "m"}], []])
async def test_a_list_of_models_that_is_none_is_a_problem_that_is_shown(server: Server, watch: Watch, models: Any) -> None:
    server.models = models
    problem = await (await watch(server.url)).turn() or ""
    assert problem.startswith("refuses us: ")
    assert len(problem) <= 300


async def test_a_named_model_comes_with_its_own_window(server: Server, watch: Watch) -> None:
    watched = await watch(server.url, model="second")
    assert await watched.turn() is None
    assert watched.endpoint.info is not None
    assert (watched.endpoint.info.model, watched.endpoint.info.max_model_len) == ("second", 4096)


async def test_a_misspelt_model_is_a_problem_before_any_task_meets_it(server: Server, watch: Watch) -> None:
    assert "serves first, second, not frist" in (await (await watch(server.url, model="frist")).turn() or "")


async def test_an_engine_that_comes_back_with_another_model_is_used_with_that(server: Server, watch: Watch, desk: Any) -> None:
    watched = await watch(server.url)
    assert await watched.turn() is None
    server.metrics = b"x" * (9 << 20)
    watched.endpoint.look()
    assert await watched.turn() is not None
    server.models, server.metrics = [{"id": "next", "max_model_len": 2048}], b""
    watched.endpoint.look()
    assert await watched.turn() is None
    assert watched.endpoint.info is not None
    assert (watched.endpoint.info.model, watched.endpoint.info.max_model_len) == ("next", 2048)
    told = [event.fact for event in await desk.log()]
    assert [(type(fact), getattr(fact, "model", "")) for fact in told] == [(EngineUp, "first"), (EngineDown, ""), (EngineUp, "next")]


async def test_a_counter_that_began_anew_has_the_model_looked_up_again(server: Server, watch: Watch) -> None:
    watched = await watch(server.url)
    assert await watched.turn() is None
    server.metrics, server.models = b"vllm:generation_tokens_total 1\n", [{"id": "next"}]
    for path in ("/metrics", "/v1/models", "/metrics"):  # the fall is seen, the list asked for and taken in
        watched.endpoint.look()
        async with asyncio.timeout(20):
            await server.until_asked(path)
    assert watched.endpoint.info is not None
    assert watched.endpoint.info.model == "next"


async def test_without_metrics_the_models_are_read_now_and_then_over_one_connection(server: Server, watch: Watch, desk: Any) -> None:
    server.metrics = None
    watched = await watch(server.url)
    assert await watched.turn() is None
    for _ in range(20):
        watched.endpoint.look()
        await desk.journal.log(EngineUp(url="", model=""))  # lets the watch come round
    assert [server.asked.get_nowait() for _ in range(server.asked.qsize())] == ["/v1/models", "/metrics"]
    server.models = [{"id": "next"}]
    for _ in range(2):
        await desk.clock.advance(INFO_EVERY_S)
        watched.endpoint.look()
        async with asyncio.timeout(20):
            await server.until_asked("/v1/models")
    assert watched.endpoint.info is not None
    assert watched.endpoint.info.model == "next"
    assert len(server.connections) == 2, "one for the models, one for the metrics"


async def test_a_key_that_no_header_can_hold_is_a_problem_that_is_shown(server: Server, watch: Watch) -> None:
    problem = await (await watch(server.url, api_key="schlüssel\n")).turn() or ""
    assert "Error" in problem
    assert "schl" not in problem


@pytest.mark.parametrize("url", ["http://localhost:abc/v1", "http://[::1/v1", "http://h:99999", "http://", "nonsense"])
def test_a_mistyped_endpoint_is_refused_when_the_settings_are_made(url: str) -> None:
    with pytest.raises(UserError, match="is no endpoint") as refused:
        settle(None, StationOptions(endpoint=url))
    assert "http://localhost:8000/v1" in refused.value.hint


def test_settings_keep_the_url_in_one_spelling() -> None:
    assert settle(None, StationOptions(endpoint="http://h:8000/")).endpoint == "http://h:8000/v1"
