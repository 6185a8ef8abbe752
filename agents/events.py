"""Facts that an agent reports while it works, in the past tense: stored first, then shown.

Streamed text is not among them (see `agents.meter`): a fact per token would drown the store.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """The root of all facts; `type` is the kind's name in the event log."""


class ModelAsked(Fact, frozen=True, kw_only=True, tag="model-asked"):
    """The station waits for the model from here on. `step` counts from 1."""

    step: int


class ModelRetried(Fact, frozen=True, kw_only=True, tag="model-retried"):
    """A reply was broken or refused and is asked for again after `wait_s`."""

    step: int
    reason: str
    wait_s: float


class ModelReplied(Fact, frozen=True, kw_only=True, tag="model-replied"):
    """A whole reply came. Tokens are the engine's usage, None when it reported none; times in seconds."""

    step: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    ttft_s: float | None
    decode_s: float | None
    tool_calls: int
    finish_reason: str


class ToolStarted(Fact, frozen=True, kw_only=True, tag="tool-started"):
    """Written before the tool runs, so that a crash in between is visible. `summary` is one short line."""

    step: int
    call_id: str
    tool: str
    summary: str


class ToolFinished(Fact, frozen=True, kw_only=True, tag="tool-finished"):
    step: int
    call_id: str
    tool: str
    summary: str
    ok: bool
    seconds: float


class Noted(Fact, frozen=True, kw_only=True, tag="noted"):
    """The agent left a note for whoever reviews its work."""

    step: int
    text: str


class StepCompleted(Fact, frozen=True, kw_only=True, tag="step-completed"):
    """The reply and all its tool results are in the trajectory file: a resumed attempt goes on from here."""

    step: int


AgentFact: TypeAlias = ModelAsked | ModelRetried | ModelReplied | ToolStarted | ToolFinished | Noted | StepCompleted
