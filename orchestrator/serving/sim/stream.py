"""An answer on its way out: chunks while the engine makes them, or one document at the end.

A chunk is put together from bytes: its frame is made once per request, and only the text of the tokens is encoded each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchestrator.serving.sim.clock import EngineClock
from orchestrator.serving.sim.faults import Fault
from orchestrator.serving.sim.metrics import FinishedReason
from orchestrator.serving.sim.reply import Piece, Reply
from orchestrator.serving.sim.scheduler import EngineRequest
from orchestrator.serving.sim.wire import StreamOptions

encode = msgspec.json.encode
DONE = b"data: [DONE]\n\n"


class Frames(Protocol):
    """How one endpoint writes an answer."""

    def opening(self, usage: bytes) -> bytes: ...
    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes: ...
    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes: ...
    def event(self, choices: bytes, usage: bytes = b"") -> bytes: ...


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
            await send({"type": "http.response.body", "body": b"data: " + encode(error) + b"\n\n" + DONE, "more_body": False})
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


class ChatFrames:
    def __init__(self, *, request_id: str, created: int, model: str, fingerprint: str) -> None:
        self._id = request_id
        tail = b',"created":%d,"model":%b,"system_fingerprint":%b,"choices":' % (created, encode(model), encode(fingerprint))
        self._head = b'data: {"id":%b,"object":"chat.completion.chunk"' % encode(request_id) + tail
        self._document_head = b'{"id":%b,"object":"chat.completion"' % encode(request_id) + tail

    def opening(self, usage: bytes) -> bytes:
        return self.event(_chat_choice(b'{"role":"assistant","content":""}', None), usage)

    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes:
        return _chat_choice(self._delta(pieces), finish_reason)

    def event(self, choices: bytes, usage: bytes = b"") -> bytes:
        return b'%b%b,"usage":%b}\n\n' % (self._head, choices, usage) if usage else b"%b%b}\n\n" % (self._head, choices)

    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes:
        message: dict[str, object] = {"role": "assistant", "content": _joined(pieces, "content") or None}
        if reasoning := _joined(pieces, "reasoning"):
            message["reasoning"] = reasoning
        message["tool_calls"] = [
            self._call(piece, "".join(p.text for p in pieces if p.kind == "arguments" and p.call == piece.call))
            for piece in pieces
            if piece.kind == "call"
        ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason, "stop_reason": None}
        return b'%b%b,"usage":%b}' % (self._document_head, encode([choice]), usage)

    def _delta(self, pieces: Sequence[Piece]) -> bytes:
        if len(pieces) == 1 and pieces[0].kind == "content":
            return b'{"content":%b}' % encode(pieces[0].text)
        delta: dict[str, object] = {}
        for kind in ("reasoning", "content"):
            if text := _joined(pieces, kind):
                delta[kind] = text
        if calls := self._call_deltas(pieces):
            delta["tool_calls"] = calls
        return encode(delta)

    def _call_deltas(self, pieces: Sequence[Piece]) -> list[dict[str, object]]:
        """One entry per call that these tokens belong to; the one that opens a call carries its id and name."""
        deltas: list[dict[str, object]] = []
        for index in sorted({piece.call for piece in pieces if piece.kind in ("call", "arguments")}):
            arguments = "".join(piece.text for piece in pieces if piece.kind == "arguments" and piece.call == index)
            opened = next((piece for piece in pieces if piece.kind == "call" and piece.call == index), None)
            if opened is None:
                deltas.append({"index": index, "function": {"arguments": arguments}})
            else:
                deltas.append({"index": index, **self._call(opened, arguments)})
        return deltas

    def _call(self, opened: Piece, arguments: str) -> dict[str, object]:
        call_id = f"chatcmpl-tool-{self._id.removeprefix('chatcmpl-')}-{opened.call}"
        return {"id": call_id, "type": "function", "function": {"name": opened.text, "arguments": arguments}}


class CompletionFrames:
    def __init__(self, *, request_id: str, created: int, model: str, fingerprint: str) -> None:
        head = b'{"id":%b,"object":"text_completion","created":%d,"model":%b,"system_fingerprint":%b,"choices":'
        self._head = head % (encode(request_id), created, encode(model), encode(fingerprint))

    def opening(self, usage: bytes) -> bytes:
        return b""

    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes:
        text = pieces[0].text if len(pieces) == 1 else _joined(pieces, "content")
        return b'[{"index":0,"text":%b,"logprobs":null,"finish_reason":%b,"stop_reason":null}]' % (encode(text), encode(finish_reason))

    def event(self, choices: bytes, usage: bytes = b"") -> bytes:
        return b'data: %b%b,"usage":%b}\n\n' % (self._head, choices, usage or b"null")

    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes:
        return b'%b%b,"usage":%b}' % (self._head, self.choices(pieces, finish_reason), usage)


def _chat_choice(delta: bytes, finish_reason: str | None) -> bytes:
    return b'[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]' % (delta, encode(finish_reason))


def _joined(pieces: Sequence[Piece], kind: Literal["reasoning", "content"] | str) -> str:
    return "".join(piece.text for piece in pieces if piece.kind == kind)
