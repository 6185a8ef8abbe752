"""Continuous batching as vLLM's scheduler does it, without a clock: `plan` says what the next step computes and how long it takes, `apply` ends it.

Per step every running request gets one token (and its drafts) or a chunk of its prompt, within one budget of tokens; then requests are admitted in
the order of their arrival while there are seats, blocks and budget. When blocks run out, the request that came last is preempted: it gives its
blocks back and is computed again later. What the tokens say is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from orchestrator.serving.sim.blocks import BlockPool
from orchestrator.serving.sim.metrics import Counters, FinishedReason, Gauges
from orchestrator.serving.sim.profile import Profile


@dataclass(slots=True, eq=False, kw_only=True)
class EngineRequest:
    """One request in the engine. `on_output` is told the number of output tokens so far, and the reason when it was the last."""

    prompt_tokens: int
    hashes: Sequence[int]
    """One per full block of the prompt, each over everything before it."""
    output_tokens: int
    """How many it will produce, at least one."""
    ends_with: Literal["stop", "length"]
    draw: Random
    """Decides which drafts are accepted: of the request alone, so that the load around it changes nothing."""
    on_output: Callable[[int, FinishedReason | None], None]
    arrived_s: float
    produced: int = 0
    computed: int = 0
    """Tokens whose KV entries are there."""
    cached_tokens: int | None = None
    """Prompt tokens found in the prefix cache at admission; None before."""
    blocks: list[int] = field(default_factory=list[int])
    last_output_s: float = 0.0
    ended: bool = False

    @property
    def known(self) -> int:
        return self.prompt_tokens + self.produced


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    seconds: float
    decoding: list[EngineRequest]
    filling: list[tuple[EngineRequest, int]]
    """Requests whose prompt is being computed, with the tokens of this step."""


class Scheduler:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.counters = Counters(accepted_at=[0] * len(profile.acceptance_rates))
        self._pool = BlockPool(profile.num_gpu_blocks)
        self._running: list[EngineRequest] = []
        self._waiting: deque[EngineRequest] = deque()
        self._decode_s = profile.decode_table_s()

    def add(self, request: EngineRequest) -> None:
        self._waiting.append(request)

    def abort(self, request: EngineRequest) -> None:
        """The client is gone. Tokens made so far stay counted; a step under way makes no more."""
        if request.ended:
            return
        if request in self._waiting:
            self._waiting.remove(request)
        else:
            self._running.remove(request)
        self._end(request, "abort")

    def gauges(self) -> Gauges:
        return Gauges(
            running=len(self._running),
            waiting=len(self._waiting),
            kv_usage=self._pool.usage(),
            num_gpu_blocks=self.profile.num_gpu_blocks,
            block_size=self.profile.block_size,
            prefix_caching=self.profile.prefix_caching,
            speculates=bool(self.profile.acceptance_rates),
        )

    def plan(self, now_s: float) -> Step | None:
        """None when there is nothing to do."""
        decoding: list[EngineRequest] = []
        filling: list[tuple[EngineRequest, int]] = []
        budget, preempted = self._continue_running(decoding, filling)
        if not preempted:
            self._admit(filling, budget, now_s)
        if not decoding and not filling:
            return None
        prefill = sum(tokens for _, tokens in filling) / self.profile.prefill_tokens_per_s
        return Step(seconds=self._decode_s[len(decoding)] + prefill, decoding=decoding, filling=filling)

    def apply(self, step: Step, now_s: float) -> None:
        """Ends the step: its tokens exist now, finished requests leave."""
        ended = [request for request in step.decoding if not request.ended and self._decode(request, now_s)]
        for request, tokens in step.filling:
            if not request.ended and self._fill(request, tokens, now_s):
                ended.append(request)
        if ended:
            self._running = [request for request in self._running if not request.ended]

    def _continue_running(self, decoding: list[EngineRequest], filling: list[tuple[EngineRequest, int]]) -> tuple[int, bool]:
        """The budget that is left, and whether somebody had to be preempted."""
        budget, per_decode, preempted, at = self.profile.max_num_batched_tokens, 1 + len(self.profile.acceptance_rates), False, 0
        while at < len(self._running) and budget > 0:
            request = self._running[at]
            missing = request.known - request.computed
            decodes = missing == 1 and request.produced > 0
            tokens = per_decode if decodes else min(missing, budget)
            if not self._grow(request, request.computed + tokens):
                self._preempt(self._running.pop())
                preempted = True
                continue
            if decodes:
                decoding.append(request)
            else:
                filling.append((request, tokens))
            budget -= tokens
            at += 1
        return budget, preempted

    def _admit(self, filling: list[tuple[EngineRequest, int]], budget: int, now_s: float) -> None:
        size = self.profile.block_size
        while self._waiting and budget > 0 and len(self._running) < self.profile.max_num_seqs:
            request = self._waiting[0]
            # The last token is always computed: the first output token comes from it.
            cached = self._pool.cached_prefix(request.hashes[: (request.known - 1) // size]) if self.profile.prefix_caching else []
            needed = -(-request.known // size) - len(cached)
            if self._pool.available - self._pool.idle(cached) < needed:
                return
            self._waiting.popleft()
            self._running.append(request)
            self._pool.take(cached)
            request.blocks = cached + self._pool.allocate(needed)
            request.computed = len(cached) * size
            self._count_admission(request, now_s)
            tokens = min(request.known - request.computed, budget)
            filling.append((request, tokens))
            budget -= tokens

    def _count_admission(self, request: EngineRequest, now_s: float) -> None:
        if request.cached_tokens is not None:  # preempted before: counted then
            return
        request.cached_tokens = request.computed
        self.counters.queue_s.observe(now_s - request.arrived_s)
        if self.profile.prefix_caching:
            self.counters.prefix_queries += request.prompt_tokens
            self.counters.prefix_hits += request.computed

    def _grow(self, request: EngineRequest, tokens: int) -> bool:
        """Gives the request blocks for so many tokens. False when there are too few."""
        held = len(request.blocks)
        if tokens <= held * self.profile.block_size:
            return True
        # Drafts beyond the last token that will be kept need no room: one request of the full length always fits.
        wanted = min(tokens, request.prompt_tokens + request.output_tokens)
        needed = -(-wanted // self.profile.block_size) - held
        if needed > self._pool.available:
            return False
        request.blocks += self._pool.allocate(max(0, needed))
        return True

    def _preempt(self, request: EngineRequest) -> None:
        self.counters.preemptions += 1
        self._pool.release(request.blocks)
        request.blocks = []
        request.computed = 0
        self._waiting.appendleft(request)

    def _decode(self, request: EngineRequest, now_s: float) -> bool:
        """True when it was the request's last step."""
        tokens = 1
        if self.profile.acceptance_rates:
            tokens += self._accepted(request)
        self.counters.itl_s.observe(now_s - request.last_output_s)
        return self._produce(request, tokens, now_s)

    def _accepted(self, request: EngineRequest) -> int:
        drawn, accepted = request.draw.random(), 0
        for position, rate in enumerate(self.profile.acceptance_rates):
            if drawn >= rate:
                break
            self.counters.accepted_at[position] += 1
            accepted += 1
        self.counters.drafts += 1
        self.counters.draft_tokens += len(self.profile.acceptance_rates)
        self.counters.accepted_tokens += accepted
        return accepted

    def _fill(self, request: EngineRequest, tokens: int, now_s: float) -> bool:
        size = self.profile.block_size
        if self.profile.prefix_caching:
            for at in range(request.computed // size, min((request.computed + tokens) // size, len(request.hashes))):
                self._pool.register(request.blocks[at], request.hashes[at])
        request.computed += tokens
        if request.computed < request.known:
            return False
        if request.produced == 0:
            self.counters.prompt_tokens += request.prompt_tokens
            self.counters.cached_tokens += request.cached_tokens or 0
            self.counters.ttft_s.observe(now_s - request.arrived_s)
        else:
            self.counters.itl_s.observe(now_s - request.last_output_s)
        return self._produce(request, 1, now_s)

    def _produce(self, request: EngineRequest, tokens: int, now_s: float) -> bool:
        tokens = min(tokens, request.output_tokens - request.produced)
        request.produced += tokens
        request.computed = request.known - 1
        request.last_output_s = now_s
        self.counters.output_tokens += tokens
        if request.produced < request.output_tokens:
            request.on_output(request.produced, None)
            return False
        self.counters.e2e_s.observe(now_s - request.arrived_s)
        self._end(request, request.ends_with)
        request.on_output(request.produced, request.ends_with)
        return True

    def _end(self, request: EngineRequest, reason: FinishedReason) -> None:
        request.ended = True
        self._pool.release(request.blocks)
        request.blocks = []
        self.counters.finished[reason] += 1
        self.counters.request_prompt_tokens.observe(request.prompt_tokens)
        self.counters.request_output_tokens.observe(request.produced)
