"""How an agent's run ends: a value for the worker, never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The agent says that it is done. Its submit call stays open until `Agent.refuse` answers it; checks decide, not its word."""

    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """`context`: the conversation no longer fits the model's window."""

    limit: Literal["steps", "tokens", "seconds", "context"]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """The agent goes round in circles or answers without acting."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The endpoint refuses the request for good (key, model name, malformed)."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Faulted:
    """The engine sent broken replies several times in a row: not the agent's fault, the attempt may be tried again without using it up."""

    message: str


Outcome: TypeAlias = Submitted | LimitReached | Stuck | Rejected | Faulted
