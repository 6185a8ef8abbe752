"""The agent loop: prompt, model, validated tool calls, results, and so on until the agent submits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from agents.asking import Asking, OutOfTime
from agents.errors import ContextTooLong, ModelFault, ModelRejected
from agents.events import AgentFact, Noted, StepCompleted, ToolFinished, ToolStarted
from agents.limits import Budget, Limits, steps_in
from agents.messages import Assistant, Message, ToolCall, ToolResult, User
from agents.meter import Meter
from agents.model import ChatModel
from agents.outcome import Faulted, LimitReached, Outcome, Rejected
from agents.stuck import remark, stuck
from agents.submission import A_PERSON_SPOKE, MUTATING, NOTE, SUBMIT, answer, in_order, note_text, objection, open_submission, submitted
from agents.tools.toolbox import Toolbox
from agents.trajectory import Trajectory

Emit: TypeAlias = Callable[[AgentFact], Awaitable[None]]
AfterStep: TypeAlias = Callable[[int, bool], Awaitable[list[User]]]
"""Called with (step, mutated) once a step is in the trajectory; returns what a person said meanwhile. `mutated`: a write, edit or run was among its calls."""


class Agent:
    """One attempt's conversation. `history` is what the trajectory holds.

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
        history: Sequence[Message],
        meter: Meter,
        limits: Limits,
        session: str,
        after_step: AfterStep,
        window_tokens: int | None = None,
        elapsed_s: float = 0.0,
    ) -> None:
        self._tools = tools
        self._emit = emit
        self._trajectory = trajectory
        self._after_step = after_step
        self._budget = Budget(limits, elapsed_s=elapsed_s)
        self._asking = Asking(model=model, tools=tools.schemas, session=session, meter=meter, emit=emit, window_tokens=window_tokens)
        self._history = list(history)

    async def run(self, opening: Sequence[Message]) -> Outcome:
        """Go on from the trajectory, or from `opening` when it is empty, until something ends it. May be called again after `refuse`.

        Raises what the worker must act on: `WorkspaceError` (the sandbox is down), and whatever `emit` and `after_step` raise.
        """
        if not self._history:
            self._remember(*opening)
        try:
            with self._budget.running():
                while (outcome := self._ended()) is None:
                    await self._step()
                return outcome
        except OutOfTime:
            return self._budget.out_of_time()
        except ContextTooLong as refused:
            return LimitReached(limit="context", message=str(refused))
        except ModelRejected as refused:
            return Rejected(message=str(refused))
        except ModelFault as fault:
            return Faulted(message=str(fault))

    def _ended(self) -> Outcome | None:
        return submitted(self._history) or stuck(self._history) or self._budget.reached(self._history)

    async def _step(self) -> None:
        step = steps_in(self._history) + 1
        turn = await self._ask(step)
        results: list[ToolResult] = []
        for call in in_order(turn.tool_calls):
            results.append(await self._call(step, call, objection(call, turn, results)))
        kept = [result for result in results if not (result.name == SUBMIT and result.ok)]  # the checks will answer that one
        self._remember(turn, *kept, *remark(self._history, turn, results))
        await self._emit(StepCompleted(step=step))
        self._hear(await self._after_step(step, any(call.name in MUTATING for call in turn.tool_calls)))

    async def _ask(self, step: int) -> Assistant:
        waited_s = self._asking.waited_s
        try:
            tokens_left, seconds_left = self._budget.tokens_left(self._history), self._budget.seconds_left
            return await self._asking.turn(step, self._history, tokens_left=tokens_left, seconds_left=seconds_left)
        finally:
            self._budget.leave_out(self._asking.waited_s - waited_s)

    async def _call(self, step: int, call: ToolCall, objection: str | None) -> ToolResult:
        summary = self._tools.summary(call)
        await self._emit(ToolStarted(step=step, call_id=call.id, tool=call.name, summary=summary))
        result = await self._tools.call(call, within_s=self._budget.seconds_left) if objection is None else answer(call, objection)
        if call.name == NOTE and result.ok:
            await self._emit(Noted(step=step, text=note_text(call)))
        if not result.ok:
            summary = f"{summary}: {result.text.partition(chr(10))[0][:100]}"
        finished = ToolFinished(step=step, call_id=call.id, tool=call.name, summary=summary, ok=result.ok, seconds=result.seconds or 0.0)
        await self._emit(finished)
        return result

    def _hear(self, said: Sequence[User]) -> None:
        if said:
            call = open_submission(self._history)
            self._remember(*([answer(call, A_PERSON_SPOKE)] if call else []), *said)

    def refuse(self, text: str) -> None:
        """Answer the open submit call: `text` says which checks failed. The next `run` goes on from there."""
        call = open_submission(self._history)
        if call is None:
            raise ValueError("there is no open submission to refuse")
        self._remember(answer(call, text))

    @property
    def elapsed_s(self) -> float:
        """Seconds used of the limit so far, earlier runs included, waiting for the engine not."""
        return self._budget.elapsed_s

    def _remember(self, *messages: Message) -> None:
        self._trajectory.append(messages)
        self._history.extend(messages)
