"""A reply put together out of its chunks, and the meter raised while they come."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

import msgspec

from agents.errors import ModelFault
from agents.messages import Assistant, ToolCall, Usage
from agents.meter import Meter
from agents.wire import CallDelta, Chunk, Delta, decode_chunk, error_text

LIVE_CHARACTERS = 600
"""How much of the text in the making the meter shows."""
_DONE = b"[DONE]"
_BROKEN = frozenset({"error", "abort"})
"""Finish reasons with which vLLM ends a reply that it could not finish."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list[str])


class ReplyBuilder:
    """Takes the data of a stream's events in order. `done` once `[DONE]` came; `finish_reason` None until the reply is whole.

    Tokens are raised on the meter by the difference to the last usage seen, so they are right for engines that send usage
    with every chunk and for those that send it at the end, and what a stream counted before it broke stays counted.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._started = time.perf_counter()
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallAssembler()
        self._usage: Usage | None = None
        self.chunks = 0
        self.finish_reason: str | None = None
        self.done = False

    def take(self, events: list[bytes]) -> None:
        """Raises `ModelFault` for an error inside the stream and for what is no chunk at all."""
        if not events:
            return
        now = time.perf_counter()
        shown: list[str] = []
        for event in events:
            if event == _DONE:
                self.done = True
                break
            if not event:
                continue
            chunk = _decoded(event)
            self.chunks += 1
            for choice in chunk.choices or ():
                if choice.delta is not None and self._take_delta(choice.delta, shown):
                    self._last_at = now
                    if self._first_at is None:
                        self._first_at = now
                if choice.finish_reason:
                    self.finish_reason = choice.finish_reason
            if chunk.usage is not None:
                self._count(chunk.usage.usage())
        if shown:
            self._meter.streaming = True
            self._meter.live_text = (self._meter.live_text + "".join(shown))[-LIVE_CHARACTERS:]

    def _take_delta(self, delta: Delta, shown: list[str]) -> bool:
        """True when the delta carried anything that the model wrote."""
        wrote = False
        if thinking := delta.reasoning or delta.reasoning_content:  # some servers send both, with the same text
            self._reasoning.append(thinking)
            shown.append(thinking)
            wrote = True
        if delta.content:
            self._text.append(delta.content)
            shown.append(delta.content)
            wrote = True
        for call in delta.tool_calls or ():
            if piece := self._calls.take(call):
                shown.append(piece)
            wrote = True
        return wrote

    def _count(self, usage: Usage) -> None:
        before, meter = self._usage or Usage(input_tokens=0, output_tokens=0), self._meter
        meter.input_tokens += max(0, usage.input_tokens - before.input_tokens)
        meter.output_tokens += max(0, usage.output_tokens - before.output_tokens)
        if usage.cached_tokens is not None:
            meter.cached_tokens = (meter.cached_tokens or 0) + max(0, usage.cached_tokens - (before.cached_tokens or 0))
        elif before.cached_tokens is not None:  # the details often come in one chunk only
            usage = msgspec.structs.replace(usage, cached_tokens=before.cached_tokens)
        self._usage = usage

    def close(self) -> None:
        """The stream has ended, well or not: its decode time is added to the meter, its text is gone from it."""
        meter = self._meter
        if self.decode_s is not None:
            meter.decode_s = (meter.decode_s or 0.0) + self.decode_s
        meter.streaming = False
        meter.live_text = ""

    @property
    def ttft_s(self) -> float | None:
        return None if self._first_at is None else self._first_at - self._started

    @property
    def decode_s(self) -> float | None:
        return None if self._first_at is None or self._last_at is None else self._last_at - self._first_at

    def message(self, *, max_tokens: int | None) -> Assistant:
        """The whole reply. A reply that used up `max_tokens` was cut off whatever its finish reason says ("length" then).

        Raises `ModelFault` when no finish reason came: the stream ended early and nothing of it may be used.
        """
        if self.finish_reason is None:
            raise ModelFault(f"the stream ended after {self.chunks} chunks without a finish reason")
        if self.finish_reason in _BROKEN:
            raise ModelFault(f"the engine gave the reply up (finish reason {self.finish_reason!r})")
        used_up = max_tokens is not None and self._usage is not None and self._usage.output_tokens >= max_tokens
        reasoning, text = _without_thinking("".join(self._reasoning), "".join(self._text))
        return Assistant(
            text=text,
            reasoning=reasoning,
            tool_calls=self._calls.calls(),
            finish_reason="length" if used_up else self.finish_reason,
            usage=self._usage,
        )


class CallAssembler:
    """Tool calls out of their deltas, by index; an index or id that is missing, repeated or wrong is put right where it can be told."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._order: list[_Call] = []

    def take(self, delta: CallDelta) -> str:
        """Adds a delta; gives the piece of its arguments."""
        function = delta.function
        name = (function.name if function else None) or ""
        arguments = (function.arguments if function else None) or ""
        call = self._known(delta, name)
        if call is None:
            call = _Call(id=delta.id or "", name=name)
            self._order.append(call)
            self._by_index[len(self._order) - 1 if delta.index is None else delta.index] = call
        else:
            call.id = call.id or delta.id or ""
            if name and not call.arguments and not call.name.endswith(name):
                call.name += name  # a name in pieces; a name that only repeats (some send it with every delta) changes nothing
        if arguments:
            call.arguments.append(arguments)
        return arguments

    def _known(self, delta: CallDelta, name: str) -> _Call | None:
        """The call that a delta goes on with; None when it begins one."""
        if not self._order:
            return None
        last = self._order[-1]
        if delta.index is None:
            begins = bool(name) and bool(last.arguments) and (delta.id != last.id if delta.id else name != last.name)
            return None if begins else last
        call = self._by_index.get(delta.index)
        if call is None:
            return None if name or delta.id else last
        other_id = bool(delta.id) and bool(call.id) and delta.id != call.id
        return None if other_id and name else call

    def calls(self) -> tuple[ToolCall, ...]:
        """In the order in which they began. Each has an id of its own, made up where the engine gave none or the same twice."""
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._order:
            call_id = call.id if call.id and call.id not in seen else f"call-{secrets.token_hex(6)}"
            seen.add(call_id)
            calls.append(ToolCall(id=call_id, name=call.name, arguments="".join(call.arguments)))
        return tuple(calls)


def _decoded(event: bytes) -> Chunk:
    try:
        chunk = decode_chunk(event)
    except msgspec.MsgspecError as error:
        raise ModelFault(f"the stream held something that is no chunk ({error}): {event[:120].decode(errors='replace')}") from None
    if chunk.error is not None or (chunk.choices is None and chunk.usage is None):
        message = error_text(msgspec.json.decode(event))
        if message is not None:
            raise ModelFault(f"the engine sent an error inside the stream: {message}")
    return chunk


def _without_thinking(reasoning: str, text: str) -> tuple[str, str]:
    """Thinking that an engine without a reasoning parser left at the head of the text, moved where it belongs."""
    head, closed, rest = text.partition("</think>")
    if closed and head.lstrip().startswith("<think>"):
        return reasoning + head.lstrip().removeprefix("<think>"), rest.lstrip("\n")
    return reasoning, text
