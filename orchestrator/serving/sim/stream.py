"""An answer on its way out: chunks while the engine makes them, or one document at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.serving.sim.clock import EngineClock
from orchestrator.serving.sim.faults import Fault
from orchestrator.serving.sim.frames import Frames
from orchestrator.serving.sim.metrics import FinishedReason
from orchestrator.serving.sim.reply import Reply
from orchestrator.serving.sim.scheduler import EngineRequest
from orchestrator.serving.sim.wire import StreamOptions

DONE = b"data: [DONE]\n\n"


class Delivery:
    """How far the engine is with one request. The one who sends waits here for more."""

    __slots__ = ("_interval", "_taken", "_waiter", "ended", "produced")

    def __init__(self, interval: int) -> None:
        self.produced = 0
        self.ended: FinishedReason | None = None
        self._taken = 0
        self._interval = interval
        self._waiter: asyncio.Future[None] | None = None

    def put(self, produced: int, ended: FinishedReason | None) -> None:
        self.produced = produced
        self.ended = ended
        if self._waiter is not None and self._due():
            self._waiter.set_result(None)
            self._waiter = None

    def close(self) -> None:
        """The client is gone."""
        if self.ended is None:
            self.put(self.produced, "abort")

    async def more(self) -> bool:
        """Returns when there is something to send or the answer is complete. False when there is nobody left to send to."""
        if not self._due():
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._taken = self.produced
        return self.ended != "abort"

    def _due(self) -> bool:
        new = self.produced - self._taken
        return self.ended is not None or new >= self._interval or (new > 0 and self._taken == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    request: EngineRequest
    reply: Reply
    frames: Frames
    delivery: Delivery
    clock: EngineClock
    options: StreamOptions
    faults: Mapping[str, Fault]

    def finish_reason(self) -> str | None:
        """As the client is told."""
        if "no-finish-reason" in self.faults:
            return None
        return self.reply.finish_reason if self.delivery.ended == "stop" else self.delivery.ended

    def usage(self, produced: int, *, cached: bool = False) -> bytes:
        prompt = self.request.prompt_tokens
        details = b',"prompt_tokens_details":{"cached_tokens":%d}' % (self.request.cached_tokens or 0) if cached else b""
        return b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d%b}' % (prompt, prompt + produced, produced, details)


class AnswerResponse(Response):
    """Sends an answer, and takes the request out of the engine when the client goes away before its end."""

    def __init__(self, answer: Answer, *, streamed: bool) -> None:
        super().__init__(media_type="text/event-stream; charset=utf-8" if streamed else "application/json")
        self._answer = answer
        self._streamed = streamed
        self._submitted = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(receive))
            try:
                await (self._stream(send) if self._streamed else self._document(send))
            finally:
                watch.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._abort()

    def _abort(self) -> None:
        if self._submitted:
            self._answer.clock.scheduler.abort(self._answer.request)
        self._answer.delivery.close()

    async def _submit(self) -> bool:
        """False when the client left before."""
        answer = self._answer
        if "hang" in answer.faults:
            while await answer.delivery.more():
                pass
            return False
        if (late := answer.faults.get("slow-start")) is not None:
            await asyncio.sleep(late.seconds)
        if answer.delivery.ended is not None:
            return False
        self._submitted = True
        answer.clock.submit(answer.request)
        return True

    async def _start(self, send: Send, *, length: int | None = None) -> None:
        headers = [(key, value) for key, value in self.raw_headers if key != b"content-length"]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _stream(self, send: Send) -> None:
        answer = self._answer
        await self._start(send)
        if not await self._submit():
            return
        delivery, continuous, sent = answer.delivery, answer.options.continuous_usage_stats and "no-usage" not in answer.faults, 0
        breaks_at = self._breaks_at()
        while delivery.ended is None:
            if not await delivery.more():
                return
            if breaks_at is not None and delivery.produced >= breaks_at:
                await self._break(send)
                return
            produced = delivery.produced
            finish = answer.finish_reason() if delivery.ended else None
            choices = answer.frames.choices(answer.reply.pieces[sent:produced], finish)
            chunk = answer.frames.event(choices, answer.usage(produced) if continuous else b"")
            if sent == 0:
                chunk = answer.frames.opening(answer.usage(0) if continuous else b"") + chunk
            sent = produced
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": self._closing(), "more_body": False})

    def _closing(self) -> bytes:
        answer = self._answer
        if not answer.options.include_usage or "no-usage" in answer.faults:
            return DONE
        return answer.frames.event(b"[]", answer.usage(answer.delivery.produced, cached=True)) + DONE

    def _breaks_at(self) -> int | None:
        """The number of output tokens at which a fault ends the stream."""
        if self._answer.faults.keys() & {"cut-stream", "error-in-stream"}:
            return max(1, self._answer.request.output_tokens // 2)
        return None

    async def _break(self, send: Send) -> None:
        self._abort()
        if "error-in-stream" in self._answer.faults:
            error = {
                "error": {
                    "message": "EngineCore encountered an issue (a fault of the simulation).",
                    "type": "InternalServerError",
                    "code": 500,
                }
            }
            await send({"type": "http.response.body", "body": b"data: " + msgspec.json.encode(error) + b"\n\n" + DONE, "more_body": False})
        # Otherwise the answer stays without an end, for which the server closes the connection.

    async def _document(self, send: Send) -> None:
        answer = self._answer
        if not await self._submit():
            return
        while answer.delivery.ended is None:
            if not await answer.delivery.more():
                return
        produced = answer.delivery.produced
        usage = b"null" if "no-usage" in answer.faults else answer.usage(produced, cached=True)
        body = answer.frames.document(answer.reply.pieces[:produced], answer.finish_reason(), usage)
        if "cut-stream" in answer.faults:
            await self._start(send, length=len(body))
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            return
        await self._start(send, length=len(body))
        await send({"type": "http.response.body", "body": body, "more_body": False})
