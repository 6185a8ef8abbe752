"""One whole reply, however often the engine must be asked for it: waiting while it is down, again when a reply broke, with less room when it did not fit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from agents.errors import ContextTooLong, ModelFault, ModelUnavailable
from agents.events import AgentFact, ModelAsked, ModelReplied, ModelRetried
from agents.history import well_formed
from agents.messages import Assistant, Message
from agents.meter import Meter
from agents.model import ChatModel, Reply, ToolSchema

TRIES = 5
"""Broken replies to one request before it is given up."""
FAULT_WAIT_S = 0.5
REPLY_TOKENS = 16_384
"""The longest reply, thinking included: a model that never stops must not fill its window."""
LEAST_REPLY_TOKENS = 256
MARGIN_TOKENS = 256
BYTES_PER_TOKEN = 3
"""Fewer than any usual text has, so that what was added since the engine last counted is not underrated."""


class OutOfTime(Exception):
    """The attempt's seconds ran out during a reply."""


class Asking:
    """`window_tokens` is the model's window, None until an engine names it. `waited_s` sums the time in which the engine was not to be had."""

    def __init__(
        self,
        *,
        model: ChatModel,
        tools: Sequence[ToolSchema],
        session: str,
        meter: Meter,
        emit: Callable[[AgentFact], Awaitable[None]],
        window_tokens: int | None,
    ) -> None:
        self._model = model
        self._tools = tools
        self._session = session
        self._meter = meter
        self._emit = emit
        self.window_tokens = window_tokens
        self.waited_s = 0.0

    async def turn(self, step: int, history: Sequence[Message], *, tokens_left: int, seconds_left: float) -> Assistant:
        """The next turn. Raises `ModelFault` after `TRIES` broken replies, `ContextTooLong`, `ModelRejected`, and `OutOfTime`."""
        await self._emit(ModelAsked(step=step))
        reply = await self._reply(step, history, tokens_left, seconds_left)
        usage = reply.message.usage
        replied = ModelReplied(
            step=step,
            input_tokens=usage.input_tokens if usage else None,
            cached_tokens=usage.cached_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            ttft_s=reply.ttft_s,
            decode_s=reply.decode_s,
            tool_calls=len(reply.message.tool_calls),
            finish_reason=reply.message.finish_reason,
        )
        await self._emit(replied)
        return reply.message

    async def _reply(self, step: int, history: Sequence[Message], tokens_left: int, seconds_left: float) -> Reply:
        messages, waited_before_s, began = well_formed(history), self.waited_s, time.monotonic()
        max_tokens, faults = self._room(history, tokens_left), 0
        while True:
            await self._passage(step)
            used_s = time.monotonic() - began - (self.waited_s - waited_before_s)
            asked_at = time.monotonic()
            try:
                return await self._once(messages, max_tokens, seconds_left - used_s)
            except ModelUnavailable as refused:
                self.waited_s += time.monotonic() - asked_at
                self._model.gate.refused(str(refused), retry_after_s=refused.retry_after_s)
            except ModelFault as fault:
                faults += 1
                if faults >= TRIES:
                    raise
                wait_s = FAULT_WAIT_S * 2 ** (faults - 1)
                await self._emit(ModelRetried(step=step, reason=str(fault), wait_s=wait_s))
                await self._model.gate.rest(wait_s)
            except ContextTooLong as refused:
                self.window_tokens = refused.limit_tokens or self.window_tokens
                max_tokens = _less(max_tokens, refused)
                await self._emit(ModelRetried(step=step, reason=f"asking for {max_tokens} tokens at most: {refused}", wait_s=0.0))

    async def _once(self, messages: Sequence[Message], max_tokens: int, seconds_left: float) -> Reply:
        limit = asyncio.timeout(max(0.0, seconds_left))
        try:
            async with limit:
                return await self._model.reply(messages, self._tools, session=self._session, meter=self._meter, max_tokens=max_tokens)
        except TimeoutError:
            if limit.expired():
                raise OutOfTime from None
            raise

    async def _passage(self, step: int) -> None:
        gate, began = self._model.gate, time.monotonic()
        wait_s = gate.wait_s()
        if wait_s > 0:
            await self._emit(ModelRetried(step=step, reason=gate.reason, wait_s=wait_s))
        await gate.passage()
        self.waited_s += time.monotonic() - began

    def _room(self, history: Sequence[Message], tokens_left: int) -> int:
        """How long the reply may be: within the attempt's tokens, and what is left of the window by the engine's own last count."""
        wanted = min(REPLY_TOKENS, tokens_left)
        if self.window_tokens is None:
            return wanted
        free = self.window_tokens - MARGIN_TOKENS - _prompt_tokens(history)
        return max(1, min(wanted, max(free, LEAST_REPLY_TOKENS)))


def _prompt_tokens(history: Sequence[Message]) -> int:
    """What the engine counted for the last reply and its prompt, and an upper guess for what came since."""
    since_bytes = 0
    for message in reversed(history):
        if isinstance(message, Assistant) and message.usage is not None:
            return message.usage.input_tokens + message.usage.output_tokens + since_bytes // BYTES_PER_TOKEN
        since_bytes += len(msgspec.json.encode(message))
    return since_bytes // BYTES_PER_TOKEN


def _less(max_tokens: int, refused: ContextTooLong) -> int:
    """A smaller room than the one refused; raises `refused` when there is none worth asking for."""
    half = max_tokens // 2
    if refused.limit_tokens is not None and refused.prompt_tokens is not None:
        free = refused.limit_tokens - refused.prompt_tokens - MARGIN_TOKENS
        half = free if free < max_tokens else half
    if half < LEAST_REPLY_TOKENS:
        raise refused
    return half
