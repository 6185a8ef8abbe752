"""The routes of the simulated engine: vLLM's surface on a Starlette application."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import NoReturn

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ExceptionHandler

from orchestrator.serving.sim.clock import EngineClock
from orchestrator.serving.sim.faults import Fault, Faults
from orchestrator.serving.sim.frames import ChatFrames, CompletionFrames, Frames
from orchestrator.serving.sim.metrics import render
from orchestrator.serving.sim.profile import Profile
from orchestrator.serving.sim.reply import Reply, filled, reply_to_chat
from orchestrator.serving.sim.scheduler import EngineRequest, Scheduler
from orchestrator.serving.sim.script import Script
from orchestrator.serving.sim.stream import Answer, AnswerResponse, Delivery
from orchestrator.serving.sim.tokens import VOCABULARY, decode, encode, seed_of
from orchestrator.serving.sim.wire import (
    ChatBody,
    CompletionBody,
    DetokenizeBody,
    Prompt,
    RequestRefusedError,
    Sampling,
    StreamOptions,
    TokenizeBody,
    chat_prompt,
    check_model,
    completion_prompt,
    decoded,
    output_limit,
    rendered,
)

VERSION = "0.1.0+simulated"
NO_OPTIONS = StreamOptions()
Handler = Callable[[Request], Awaitable[Response]]


class SimulatedEngine:
    def __init__(self, profile: Profile, *, scripts: Mapping[str, Script], faults: Faults, seed: int) -> None:
        self.profile = profile
        self.clock = EngineClock(Scheduler(profile))
        self._scripts = scripts
        self._faults = faults
        self._seed = seed
        self._created = int(time.time())
        self._requests = 0
        self._fingerprint = f"simulated-{profile.name}-seed{seed}"

    def application(self) -> Starlette:
        routes = [
            Route("/health", self._health),
            Route("/ping", self._health, methods=["GET", "POST"]),
            Route("/version", self._version),
            Route("/metrics", self._metrics),
            Route("/v1/models", self._models),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/completions", self._completion, methods=["POST"]),
            Route("/tokenize", self._tokenize, methods=["POST"]),
            Route("/detokenize", self._detokenize, methods=["POST"]),
        ]
        handlers: dict[type[Exception] | int, ExceptionHandler] = {RequestRefusedError: _refusal, 404: _not_found}
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers)  # pyright: ignore[reportArgumentType]

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        # No task group around a `yield`: the clock's one task is ended and looked at here.
        clock = asyncio.get_running_loop().create_task(self.clock.run())
        clock.add_done_callback(_end_when_dead)
        try:
            yield
        finally:
            clock.cancel()
            await asyncio.wait([clock])

    async def _health(self, _: Request) -> Response:
        return Response()

    async def _version(self, _: Request) -> Response:
        return _json({"version": VERSION, "simulated": True, "profile": self.profile.name})

    async def _metrics(self, _: Request) -> Response:
        scheduler = self.clock.scheduler
        text = render(scheduler.counters, scheduler.gauges(), model=self.profile.model)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _models(self, _: Request) -> Response:
        model = {
            "id": self.profile.model,
            "object": "model",
            "created": self._created,
            "owned_by": "stationmaster (simulated engine)",
            "root": self.profile.model,
            "parent": None,
            "max_model_len": self.profile.max_model_len,
            "permission": list[str](),
        }
        return _json({"object": "list", "data": [model]})

    async def _tokenize(self, request: Request) -> Response:
        body = await decoded(request, TokenizeBody)
        check_model(body.model, self.profile.model)
        tokens = encode(rendered(body.messages) if body.messages is not None else (body.prompt or "").encode())
        return _json({"count": len(tokens), "max_model_len": self.profile.max_model_len, "tokens": tokens, "token_strs": None})

    async def _detokenize(self, request: Request) -> Response:
        body = await decoded(request, DetokenizeBody)
        check_model(body.model, self.profile.model)
        try:
            return _json({"prompt": decode(body.tokens).decode(errors="replace")})
        except ValueError as bad:
            raise RequestRefusedError(400, f"{bad} (ids are 0 to {VOCABULARY - 1})", param="tokens") from bad

    async def _chat(self, request: Request) -> Response:
        body = await decoded(request, ChatBody)
        check_model(body.model, self.profile.model)
        if not body.messages:
            raise RequestRefusedError(400, "messages must not be empty", param="messages")
        prompt = chat_prompt(body)
        asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
        limit = self._limit(body, prompt, asked)
        seed = seed_of(self._seed, body.seed or 0, prompt.data)
        faults = self._faults_of(seed)
        if isinstance(faults, Response):
            return faults
        draw, session = Random(seed), request.headers.get("x-session-id")  # noqa: S311 - a simulation, repeatable on purpose
        reply = reply_to_chat(body, session, self._scripts, limit=limit, draw=draw, break_arguments="bad-tool-json" in faults)
        frames = ChatFrames(
            request_id=self._name("chatcmpl", seed), created=int(time.time()), model=self.profile.model, fingerprint=self._fingerprint
        )
        return self._answer(body, prompt, reply, limit, draw, frames, faults)

    async def _completion(self, request: Request) -> Response:
        body = await decoded(request, CompletionBody)
        check_model(body.model, self.profile.model)
        prompt = completion_prompt(body)
        limit = self._limit(body, prompt, 16 if body.max_tokens is None else body.max_tokens)
        seed = seed_of(self._seed, body.seed or 0, prompt.data)
        faults = self._faults_of(seed)
        if isinstance(faults, Response):
            return faults
        draw = Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
        frames = CompletionFrames(
            request_id=self._name("cmpl", seed), created=int(time.time()), model=self.profile.model, fingerprint=self._fingerprint
        )
        return self._answer(body, prompt, filled(limit, draw), limit, draw, frames, faults)

    def _limit(self, body: Sampling, prompt: Prompt, max_tokens: int | None) -> int:
        return output_limit(body, max_tokens=max_tokens, prompt_tokens=prompt.tokens, max_model_len=self.profile.max_model_len)

    def _name(self, kind: str, seed: int) -> str:
        self._requests += 1
        return f"{kind}-{seed:016x}-{self._requests}"

    def _faults_of(self, digest: int) -> Mapping[str, Fault] | Response:
        """The faults that hit this request; those that need no engine are answered here."""
        faults = self._faults.of_request(digest)
        if "html-200" in faults:
            return Response("<html><body><h1>200 OK</h1><p>A fault of the simulation.</p></body></html>", media_type="text/html")
        if "http-503" in faults:
            raise RequestRefusedError(503, "The engine is not available (a fault of the simulation).", kind="ServiceUnavailableError")
        if (limited := faults.get("http-429")) is not None:
            raise RequestRefusedError(
                429, "Too many requests (a fault of the simulation).", kind="TooManyRequestsError", retry_after_s=limited.seconds
            )
        return faults

    def _answer(
        self, body: Sampling, prompt: Prompt, reply: Reply, limit: int, draw: Random, frames: Frames, faults: Mapping[str, Fault]
    ) -> Response:
        cut = len(reply.pieces) > limit or reply.finish_reason == "length"
        delivery = Delivery(self.profile.stream_interval)
        request = EngineRequest(
            prompt_tokens=prompt.tokens,
            hashes=prompt.block_hashes(self.profile.block_size) if self.profile.prefix_caching else (),
            output_tokens=min(limit, len(reply.pieces)),
            ends_with="length" if cut else "stop",
            draw=draw,
            on_output=delivery.put,
            arrived_s=time.monotonic(),
        )
        answer = Answer(
            request=request,
            reply=reply,
            frames=frames,
            delivery=delivery,
            clock=self.clock,
            options=body.stream_options or NO_OPTIONS,
            faults=faults,
        )
        return AnswerResponse(answer, streamed=body.stream)


def _end_when_dead(clock: asyncio.Task[NoReturn]) -> None:
    """An engine whose clock has stopped would let every client wait for ever: its process ends, as vLLM's does."""
    if not clock.cancelled() and (error := clock.exception()) is not None:
        traceback.print_exception(error)
        os.kill(os.getpid(), signal.SIGTERM)


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


async def _refusal(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, RequestRefusedError)
    return refused.response()


async def _not_found(_: Request, __: Exception) -> Response:
    return _json_error(404, "Not Found", "NotFoundError")


def _json_error(status: int, message: str, kind: str) -> Response:
    return RequestRefusedError(status, message, kind=kind).response()
