"""A reply put together out of its chunks, and the meter raised while they come."""

from __future__ import annotations

import time

import msgspec

from agents.calls import NAME_CHARACTERS, CallAssembler
from agents.decoding import NotUnderstood, decoded
from agents.errors import ModelFault
from agents.messages import Assistant, Usage
from agents.meter import Meter
from agents.wire import BareChunk, Delta, decode_bare_chunk, decode_chunk, error_text

LIVE_CHARACTERS = 600
"""How much of the text in the making the meter shows."""
TOKEN_CHARACTERS = 64
"""Longer than a token of any usual vocabulary on average: a reply above its `max_tokens` times this is none that was asked for."""
SLACK_CHARACTERS = 1 << 16
MOST_CHARACTERS = 16 << 20
"""The longest reply in any case, its thinking and its calls together."""
SHOWN_CHARACTERS = 500
_DONE = b"[DONE]"
_BROKEN = frozenset({"error", "abort"})
"""Finish reasons with which vLLM ends a reply that it could not finish."""


class ReplyBuilder:
    """Takes the data of a stream's events in order. `done` once `[DONE]` came; `finish_reason` None until the reply is whole.

    `written` counts the characters of what the model wrote; `max_tokens` is what it was asked for at most. `odd_usage` once the engine
    reported a usage that cannot be: such a report counts as none.

    Tokens are raised on the meter by the difference to the last usage seen, so they are right for engines that send usage
    with every chunk and for those that send it at the end, and what a stream counted before it broke stays counted.
    """

    def __init__(self, meter: Meter, *, max_tokens: int | None = None) -> None:
        self._meter = meter
        self._max_tokens = max_tokens
        self._most = MOST_CHARACTERS if max_tokens is None else min(MOST_CHARACTERS, max_tokens * TOKEN_CHARACTERS + SLACK_CHARACTERS)
        self._received = 0
        self._started = time.perf_counter()
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallAssembler()
        self._usage: Usage | None = None
        self.chunks = 0
        self.written = 0
        self.odd_usage = False
        self.finish_reason: str | None = None
        self.done = False

    def take(self, events: list[bytes]) -> None:
        """Raises `ModelFault` for an error inside the stream, for what is no chunk at all, and for more than a reply can be."""
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
            self._received += len(event)
            chunk, usage = self._decoded(event)
            self.chunks += 1
            for choice in chunk.choices or ():
                if choice.delta is not None and self._take_delta(choice.delta, shown):
                    self._last_at = now
                    if self._first_at is None:
                        self._first_at = now
                if choice.finish_reason:
                    self.finish_reason = choice.finish_reason[:NAME_CHARACTERS]
            if usage is not None:
                self._count(usage)
        if shown:
            self.written += sum(map(len, shown))
            if self.written > self._most:
                raise ModelFault(f"the reply was longer than {self._most:,} characters, which is more than was asked for")
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

    def _decoded(self, event: bytes) -> tuple[BareChunk, Usage | None]:
        try:
            chunk = decode_chunk(event)
            usage = chunk.usage.usage() if chunk.usage is not None else None
            says_nothing = chunk.choices is None and chunk.usage is None
        except (ValueError, RecursionError):
            chunk, usage, says_nothing = _bare(event), None, False
            self.odd_usage = True
        if chunk.error is not None or says_nothing:
            _expect_no_error(event)
        return chunk, usage

    def _count(self, usage: Usage) -> None:
        # A token is a byte of the stream at least; those that are not sent at all (hidden thinking) are within what was asked for.
        if self._max_tokens is not None and usage.output_tokens > max(self._max_tokens, self._received):
            self.odd_usage = True
            return
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

    def message(self) -> Assistant:
        """The whole reply. A reply that used up its `max_tokens` was cut off whatever its finish reason says ("length" then).

        Raises `ModelFault` when no finish reason came: the stream ended early and nothing of it may be used.
        """
        if self.finish_reason is None:
            raise ModelFault(f"the stream ended after {self.chunks} chunks without a finish reason")
        if self.finish_reason in _BROKEN:
            raise ModelFault(f"the engine gave the reply up (finish reason {self.finish_reason!r})")
        used_up = self._max_tokens is not None and self._usage is not None and self._usage.output_tokens >= self._max_tokens
        reasoning, text = _without_thinking("".join(self._reasoning), "".join(self._text))
        return Assistant(
            text=text,
            reasoning=reasoning,
            tool_calls=self._calls.calls(),
            finish_reason="length" if used_up else self.finish_reason,
            usage=self._usage,
        )


def _bare(event: bytes) -> BareChunk:
    """A chunk whose usage is none, if that is all that is wrong with it."""
    try:
        return decode_bare_chunk(event)
    except RecursionError:
        raise ModelFault("the stream held something that is nested too deeply for a chunk") from None
    except ValueError as error:
        raise ModelFault(f"the stream held something that is no chunk ({error}): {event[:120].decode(errors='replace')}") from None


def _expect_no_error(event: bytes) -> None:
    try:
        message = error_text(decoded(event))
    except NotUnderstood as odd:
        raise ModelFault(f"the stream held something that is no chunk ({odd})") from None
    if message is not None:
        raise ModelFault(f"the engine sent an error inside the stream: {message[:SHOWN_CHARACTERS]}")


def _without_thinking(reasoning: str, text: str) -> tuple[str, str]:
    """Thinking that an engine without a reasoning parser left at the head of the text, moved where it belongs."""
    head, closed, rest = text.partition("</think>")
    if closed and head.lstrip().startswith("<think>"):
        return reasoning + head.lstrip().removeprefix("<think>"), rest.lstrip("\n")
    return reasoning, text
