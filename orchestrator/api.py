"""The station's HTTP API on its Unix socket: the one way in, for the command line, the dashboard and whoever else.

Covers: the socket is its owner's only, and each request carries the home's token, compared in constant time; a slow reader of events is cut off.
Does not cover: other processes of the same user, which can read the token. Sandboxed commands cannot: neither socket nor token is in their sight.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.errors import IllegalTransition, UserError
from orchestrator.events import Event
from orchestrator.requests import Malformed, body, expect_resolved, number
from orchestrator.store import StoreFull
from orchestrator.task import TaskSpec
from orchestrator.views import DiffDocument, LogDocument, MergeView, Snapshot, StatusDocument, TaskDetail, TaskRow
from workspaces.errors import WorkspaceError

log = logging.getLogger(__name__)

HEARTBEAT_S = 5.0


class Service(Protocol):
    """What the API serves; `orchestrator.service.StationService` is the station's."""

    def status(self) -> Awaitable[StatusDocument]: ...
    def snapshot(self, after: int) -> Awaitable[Snapshot]: ...
    def task(self, task: str) -> Awaitable[TaskDetail]: ...
    def log(self, task: str, *, attempt: int | None, step: int | None) -> Awaitable[LogDocument]: ...
    def diff(self, task: str, *, since_last_look: bool) -> Awaitable[DiffDocument]: ...
    def events(self, after: int, *, task: str | None, follow: bool) -> AsyncIterator[Sequence[Event]]:
        """Batches in order; with `follow` an empty one at least every `HEARTBEAT_S`."""
        ...

    def add(self, specs: Sequence[TaskSpec]) -> Awaitable[list[str]]: ...
    def cancel(self, task: str) -> Awaitable[TaskRow]: ...
    def retry(self, task: str, comment: str) -> Awaitable[TaskRow]: ...
    def approve(self, task: str) -> Awaitable[TaskRow]: ...
    def reject(self, task: str, comment: str) -> Awaitable[TaskRow]: ...
    def merge(self, task: str) -> Awaitable[MergeView]: ...
    def say(self, task: str, text: str) -> Awaitable[TaskRow]: ...
    def look(self, task: str) -> Awaitable[TaskRow]: ...
    def stop(self) -> None: ...


class _Tasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tasks: list[TaskSpec]


class _Comment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    comment: str = ""


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


def make_app(service: Service, token: str) -> ASGIApp:
    """The ASGI application; every answer is JSON, errors are {"error", "hint"} with a 4xx or 5xx status."""
    routes = Routes(service)
    app = Starlette(
        routes=[
            Route("/v1/status", routes.status),
            Route("/v1/snapshot", routes.snapshot),
            Route("/v1/events", routes.events),
            Route("/v1/stop", routes.stop, methods=["POST"]),
            Route("/v1/tasks", routes.add, methods=["POST"]),
            Route("/v1/tasks/{task}", routes.task),
            Route("/v1/tasks/{task}/log", routes.log),
            Route("/v1/tasks/{task}/diff", routes.diff),
            Route("/v1/tasks/{task}/{verb}", routes.command, methods=["POST"]),
        ],
        exception_handlers={
            Malformed: _malformed,
            UserError: _refused,
            WorkspaceError: _refused,
            IllegalTransition: _conflict,
            StoreFull: _no_room,
            404: _unknown,
            405: _unknown,
            Exception: _fault,
        },
    )
    return _Guard(app, token)


class _Guard:
    """Nobody without the token gets further than here."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = next((value for name, value in scope.get("headers", []) if name == b"authorization"), b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, self._expected):
            refused = _error(401, "this request carries no valid token", "the token is in the home's `token` file")
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)


class Routes:
    """From HTTP to the service and back."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def status(self, _: Request) -> Response:
        return _json(await self._service.status())

    async def snapshot(self, request: Request) -> Response:
        return _json(await self._service.snapshot(number(request, "after") or 0))

    async def task(self, request: Request) -> Response:
        return _json(await self._service.task(request.path_params["task"]))

    async def log(self, request: Request) -> Response:
        return _json(await self._service.log(request.path_params["task"], attempt=number(request, "attempt"), step=number(request, "step")))

    async def diff(self, request: Request) -> Response:
        since = request.query_params.get("since_last_look", "") not in {"", "0"}
        return _json(await self._service.diff(request.path_params["task"], since_last_look=since))

    async def add(self, request: Request) -> Response:
        asked = await body(request, _Tasks)
        expect_resolved(asked.tasks)
        return _json({"added": await self._service.add(asked.tasks)})

    async def stop(self, _: Request) -> Response:
        self._service.stop()
        return _json({})

    async def command(self, request: Request) -> Response:
        service, task = self._service, request.path_params["task"]
        match request.path_params["verb"]:
            case "cancel":
                return _json(await service.cancel(task))
            case "retry":
                return _json(await service.retry(task, (await body(request, _Comment)).comment))
            case "approve":
                return _json(await service.approve(task))
            case "reject":
                return _json(await service.reject(task, (await body(request, _Comment)).comment))
            case "merge":
                return _json(await service.merge(task))
            case "say":
                return _json(await service.say(task, (await body(request, _Text)).text))
            case "look":
                return _json(await service.look(task))
            case _:
                return _error(404, "no such command", "")

    async def events(self, request: Request) -> Response:
        after, follow = number(request, "after") or 0, request.query_params.get("follow", "") not in {"", "0"}
        batches = self._service.events(after, task=request.query_params.get("task"), follow=follow)
        return StreamingResponse(_lines(batches), media_type="application/x-ndjson")


async def _lines(batches: AsyncIterator[Sequence[Event]]) -> AsyncIterator[bytes]:
    encode = msgspec.json.Encoder().encode
    async for batch in batches:
        yield b"".join(encode(event) + b"\n" for event in batch) or b"\n"


def _json(document: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, media_type="application/json")


def _error(status: int, error: str, hint: str) -> Response:
    return _json({"error": error, "hint": hint}, status)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, UserError | WorkspaceError)
    return _error(422, str(error), error.hint)


async def _malformed(_: Request, error: Exception) -> Response:
    assert isinstance(error, Malformed)
    return _error(400, str(error), error.hint)


async def _conflict(_: Request, error: Exception) -> Response:
    return _error(409, str(error), "its state has just changed: look again")


async def _no_room(_: Request, error: Exception) -> Response:
    return _error(507, f"the disk is full: {error}", "nothing was changed; make room and try again")


async def _unknown(request: Request, _: Exception) -> Response:
    return _error(404, f"no {request.method} {request.url.path} here", "")


async def _fault(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(500, f"the station failed at this: {type(error).__name__}: {error}", "its log has the details")
