"""The agent loop: prompt, model, validated tool calls, results, and so on until the agent submits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from agents.events import AgentFact
from agents.limits import Limits
from agents.messages import Message, User
from agents.meter import Meter
from agents.model import ChatModel
from agents.outcome import Outcome
from agents.tools.toolbox import Toolbox
from agents.trajectory import Trajectory

Emit: TypeAlias = Callable[[AgentFact], Awaitable[None]]
AfterStep: TypeAlias = Callable[[int, bool], Awaitable[list[User]]]
"""Called with (step, mutated) once a step is in the trajectory; returns what a person said meanwhile. `mutated`: a write, edit or run was among its calls."""


class Agent:
    """One attempt's conversation.

    `session` is the task's id. `window_tokens` is the model's context window, None when unknown. `elapsed_s` is what earlier runs of
    this attempt used of its seconds (waiting for the engine not counted); steps and tokens are read off the trajectory.
    """

    def __init__(
        self,
        *,
        model: ChatModel,
        tools: Toolbox,
        emit: Emit,
        trajectory: Trajectory,
        meter: Meter,
        limits: Limits,
        session: str,
        after_step: AfterStep,
        window_tokens: int | None = None,
        elapsed_s: float = 0.0,
    ) -> None:
        raise NotImplementedError

    async def run(self, opening: Sequence[Message]) -> Outcome:
        """Go on from the trajectory, or from `opening` when it is empty, until something ends it. May be called again after `refuse`.

        Raises what the worker must act on: `WorkspaceError` (the sandbox is down), and whatever `emit` and `after_step` raise.
        """
        raise NotImplementedError

    def refuse(self, text: str) -> None:
        """Answer the open submit call: `text` says which checks failed. The next `run` goes on from there."""
        raise NotImplementedError

    @property
    def elapsed_s(self) -> float:
        """Seconds used of the limit so far, earlier runs included, waiting for the engine not."""
        raise NotImplementedError
