"""The loop on a scripted model, with real commands: what ends it, what it remembers, what it reports. S4, S9, S12."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.asking import LEAST_REPLY_TOKENS, REPLY_TOKENS, TRIES
from agents.errors import ContextTooLong, ModelFault, ModelRejected, ModelUnavailable
from agents.events import ModelAsked, ModelReplied, ModelRetried, Noted, StepCompleted, ToolFinished, ToolStarted
from agents.gate import Gate
from agents.messages import Assistant, ToolCall, ToolResult, Usage, User
from agents.meter import Meter
from agents.model import OpenAIModel, Reply
from agents.outcome import Faulted, LimitReached, Rejected, Stuck, Submitted
from agents.roles.opening import opening
from agents.scripted import ScriptedModel, calls, says
from agents.submission import A_PERSON_SPOKE, BESIDE_A_FAILURE, CUT_OFF, TWICE
from agents.tools.toolbox import Toolbox
from agents.trajectory import Trajectory
from tests.agents.conftest import OPENING, Answer, Bench, Bounds, Endpoint, names
from workspaces.errors import SandboxUnavailable

SUBMIT = calls(("submit", {"summary": "all done"}))


def submit(summary: str = "all done") -> Assistant:
    return calls(("submit", {"summary": summary}))


def results(bench: Bench) -> list[ToolResult]:
    return [message for message in bench.trajectory.load() if isinstance(message, ToolResult)]


async def test_prompt_tool_calls_results_submit(bench: Bench) -> None:
    model = ScriptedModel([calls(("run", {"command": "echo hello"})), submit()])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="all done")
    assert [type(message).__name__ for message in model.requests[1].messages] == ["System", "User", "Assistant", "ToolResult"]
    assert model.requests[1].messages[3].text == "exit code 0\nhello"  # type: ignore[union-attr]
    assert model.requests[0].session == "task-1"
    assert bench.steps == [(1, True), (2, False)]


async def test_every_step_is_reported_in_order(bench: Bench) -> None:
    await bench.agent(ScriptedModel([calls(("run", {"command": "exit 3"})), submit()])).run(OPENING)
    assert [type(fact) for fact in bench.facts] == [ModelAsked, ModelReplied, ToolStarted, ToolFinished, StepCompleted] * 2
    replied, started, finished = bench.facts[1:4]
    assert isinstance(replied, ModelReplied)
    assert (replied.input_tokens, replied.output_tokens, replied.tool_calls, replied.finish_reason) == (100, 10, 1, "tool_calls")
    assert isinstance(started, ToolStarted)
    assert (started.step, started.tool, started.summary) == (1, "run", "run exit 3")
    assert isinstance(finished, ToolFinished)
    assert (finished.ok, finished.summary, finished.call_id) == (False, "run exit 3: exit code 3, no output", started.call_id)
    assert finished.seconds > 0


async def test_a_step_is_in_the_trajectory_before_it_is_reported_complete(bench: Bench) -> None:
    seen: list[int] = []
    emit = bench.emit

    async def look(fact: Any) -> None:
        if isinstance(fact, StepCompleted):
            seen.append(sum(isinstance(message, ToolResult) for message in Trajectory(bench.trajectory.path).load()))
        await emit(fact)

    bench.emit = look  # type: ignore[method-assign]
    await bench.agent(ScriptedModel([calls(("note", {"text": "a"})), calls(("note", {"text": "b"})), submit()])).run(OPENING)
    assert seen == [1, 2, 2]


async def test_a_note_reaches_the_reviewer(bench: Bench) -> None:
    await bench.agent(ScriptedModel([calls(("note", {"text": "took the later date"})), submit()])).run(OPENING)
    assert bench.of(Noted) == [Noted(step=1, text="took the later date")]


async def test_what_the_model_did_wrong_goes_back_to_it_as_text(bench: Bench) -> None:
    broken = Assistant(text="", tool_calls=(ToolCall(id="x", name="run", arguments='{"command": "ls'),), finish_reason="tool_calls")
    model = ScriptedModel([broken, calls(("rm", {})), calls(("run", {"cmd": "ls"})), submit()])
    assert isinstance(await bench.agent(model).run(OPENING), Submitted)
    texts = [result.text for result in results(bench)]
    assert "not valid JSON" in texts[0]
    assert "There is no tool 'rm'. Tools: read, list" in texts[1]
    assert "cmd: Extra inputs are not permitted" in texts[2]
    assert "`run` takes: command, timeout_s (optional)." in texts[2]


async def test_the_limit_of_tokens_holds_for_an_engine_that_reports_none(bench: Bench) -> None:
    turn = msgspec.structs.replace(calls(("note", {"text": "x" * 400})), usage=None)
    outcome = await bench.agent(ScriptedModel([turn, turn]), limits=Bounds(tokens=100)).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "tokens"


@pytest.mark.parametrize(("limits", "limit"), [(Bounds(steps=3), "steps"), (Bounds(tokens=30), "tokens"), (Bounds(seconds=0.0), "seconds")])
async def test_limits_end_it(bench: Bench, limits: Bounds, limit: str) -> None:
    model = ScriptedModel([calls(("note", {"text": f"note {n}"})) for n in range(9)])
    outcome = await bench.agent(model, limits=limits).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == limit
    assert len(model.requests) == (0 if limit == "seconds" else 3)


async def test_the_seconds_end_a_reply_that_never_comes(bench: Bench) -> None:
    class Silent(ScriptedModel):
        async def reply(self, *args: Any, **more: Any) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    outcome = await bench.agent(Silent([]), limits=Bounds(seconds=0.05)).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "seconds"


async def test_the_seconds_of_earlier_runs_count(bench: Bench) -> None:
    agent = bench.agent(ScriptedModel([]), elapsed_s=61.0)
    assert isinstance(await agent.run(OPENING), LimitReached)
    assert agent.elapsed_s >= 61.0


async def test_a_command_gets_no_more_time_than_the_attempt_has(bench: Bench) -> None:
    model = ScriptedModel([calls(("run", {"command": "sleep 30", "timeout_s": 60}))])
    outcome = await bench.agent(model, limits=Bounds(seconds=0.5)).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert results(bench)[0].text.startswith("Timed out after 1 s")


async def test_failed_checks_go_back_as_the_answer_to_the_submission(bench: Bench) -> None:
    model = ScriptedModel([submit("first"), submit("second")])
    agent = bench.agent(model)
    assert await agent.run(OPENING) == Submitted(summary="first")
    assert results(bench) == []
    agent.refuse("check failed: make test")
    assert await agent.run(OPENING) == Submitted(summary="second")
    assert [(result.name, result.ok, result.text) for result in results(bench)] == [("submit", False, "check failed: make test")]
    assert model.requests[1].messages[-1].text == "check failed: make test"  # type: ignore[union-attr]


def test_there_is_nothing_to_refuse_without_a_submission(bench: Bench) -> None:
    with pytest.raises(ValueError, match="no open submission"):
        bench.agent(ScriptedModel([])).refuse("no")


async def test_an_attempt_goes_on_from_its_trajectory(bench: Bench) -> None:
    await bench.agent(ScriptedModel([calls(("note", {"text": "a"}))]), limits=Bounds(steps=1)).run(OPENING)
    model = ScriptedModel([submit()])
    assert isinstance(await bench.agent(model).run([User(text="another opening")]), Submitted)
    assert [type(message).__name__ for message in model.requests[0].messages] == ["System", "User", "Assistant", "ToolResult"]
    assert bench.of(ModelAsked)[-1].step == 2


async def test_steps_and_tokens_of_earlier_runs_count(bench: Bench) -> None:
    turns = [calls(("note", {"text": f"{n}"})) for n in range(2)]
    await bench.agent(ScriptedModel(turns), limits=Bounds(steps=2)).run(OPENING)
    outcome = await bench.agent(ScriptedModel([]), limits=Bounds(tokens=20)).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "tokens"


async def test_a_submission_whose_checks_were_never_run_is_handed_over_again(bench: Bench) -> None:
    await bench.agent(ScriptedModel([submit()])).run(OPENING)
    model = ScriptedModel([])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="all done")
    assert model.requests == []


async def test_a_submission_beside_a_failed_call_does_not_count(bench: Bench) -> None:
    model = ScriptedModel([calls(("submit", {"summary": "done"}), ("run", {"command": "false"})), submit()])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="all done")
    assert [(result.name, result.text) for result in results(bench)] == [("run", "exit code 1, no output"), ("submit", BESIDE_A_FAILURE)]


async def test_two_submissions_in_one_reply_are_one(bench: Bench) -> None:
    model = ScriptedModel([calls(("submit", {"summary": "one"}), ("submit", {"summary": "two"}))])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="one")
    assert [result.text for result in results(bench)] == [TWICE]


async def test_a_submission_without_summary_is_no_submission(bench: Bench) -> None:
    assert await bench.agent(ScriptedModel([calls(("submit", {})), submit()])).run(OPENING) == Submitted(summary="all done")
    assert "summary: Field required" in results(bench)[0].text


async def test_what_a_person_says_is_heard_after_the_step(bench: Bench) -> None:
    bench.said = [User(text="use decimal")]
    model = ScriptedModel([calls(("note", {"text": "a"})), submit()])
    await bench.agent(model).run(OPENING)
    assert model.requests[1].messages[-1] == User(text="use decimal")
    assert User(text="use decimal") in bench.trajectory.load()


async def test_what_a_person_says_at_the_last_moment_takes_the_submission_back(bench: Bench) -> None:
    bench.said = [User(text="one more thing")]
    model = ScriptedModel([submit("first"), submit("second")])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="second")
    assert [message.text for message in model.requests[1].messages[-2:]] == [A_PERSON_SPOKE, "one more thing"]


@pytest.mark.parametrize("finish_reason", ["length"])
async def test_s04_nothing_of_a_cut_off_reply_is_run_but_what_only_reads(bench: Bench, root: Path, finish_reason: str) -> None:
    cut = calls(
        ("write", {"path": "x", "content": "half"}),
        ("run", {"command": "touch y"}),
        ("search", {"pattern": "z"}),
        finish_reason=finish_reason,
    )
    model = ScriptedModel([cut, calls(("submit", {"summary": "half"}), finish_reason="length"), submit()])
    assert await bench.agent(model).run(OPENING) == Submitted(summary="all done")
    assert names(root) == []
    assert [result.text for result in results(bench)] == [CUT_OFF, CUT_OFF, "No line matches.", CUT_OFF]


async def test_e9_an_agent_that_repeats_itself_is_hinted_then_stuck_never_done(bench: Bench) -> None:
    model = ScriptedModel([calls(("run", {"command": "echo same"})) for _ in range(20)])
    outcome = await bench.agent(model).run(OPENING)
    assert isinstance(outcome, Stuck)
    assert len(model.requests) == 6
    assert sum("gave the same results" in getattr(message, "text", "") for message in model.requests[-1].messages) == 1


async def test_e9_an_agent_that_only_talks_is_stuck_after_the_third_reply(bench: Bench) -> None:
    model = ScriptedModel([says("I will do it."), says(""), says("Done!")])
    assert isinstance(await bench.agent(model).run(OPENING), Stuck)
    assert len(model.requests) == 3


async def test_s12_an_engine_that_is_down_is_waited_for_and_costs_neither_steps_nor_seconds(bench: Bench, clock: Any) -> None:
    gate: Gate = clock.gate()
    model = ScriptedModel([ModelUnavailable("down"), ModelUnavailable("429", retry_after_s=40.0), submit()], gate=gate)
    agent = bench.agent(model, limits=Bounds(steps=1))
    assert await agent.run(OPENING) == Submitted(summary="all done")
    assert [(fact.step, fact.reason, fact.wait_s) for fact in bench.of(ModelRetried)] == [(1, "down", 0.5), (1, "429", 40.0)]
    assert sum(clock.slept) >= 40.5
    assert agent.elapsed_s < 1.0


async def test_s12_the_time_of_a_refused_request_does_not_count(bench: Bench) -> None:
    class Slow(ScriptedModel):
        async def reply(self, *args: Any, **more: Any) -> Reply:
            if not self.requests:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await asyncio.Event().wait()
            return await super().reply(*args, **more)

    clock_free = Gate(jitter=lambda: 0.0)
    agent = bench.agent(Slow([ModelUnavailable("timed out"), submit()], gate=clock_free))
    assert isinstance(await agent.run(OPENING), Submitted)
    assert agent.elapsed_s < 0.3


async def test_s12_agents_that_find_the_gate_closed_say_so(bench: Bench, clock: Any) -> None:
    gate: Gate = clock.gate()
    gate.refused("engine restarts")
    await bench.agent(ScriptedModel([submit()], gate=gate)).run(OPENING)
    assert [(fact.reason, fact.wait_s) for fact in bench.of(ModelRetried)] == [("engine restarts", 0.5)]


async def test_a_broken_reply_is_asked_for_again_with_the_same_request(bench: Bench, clock: Any) -> None:
    model = ScriptedModel([ModelFault("cut"), ModelFault("cut"), submit()], gate=clock.gate())
    assert isinstance(await bench.agent(model).run(OPENING), Submitted)
    assert model.requests[0] == model.requests[1] == model.requests[2]
    assert [fact.wait_s for fact in bench.of(ModelRetried)] == [0.5, 1.0]
    assert len(bench.steps) == 1


async def test_replies_that_stay_broken_are_the_engines_fault(bench: Bench, clock: Any) -> None:
    model = ScriptedModel([ModelFault(f"cut {n}") for n in range(9)], gate=clock.gate())
    assert await bench.agent(model).run(OPENING) == Faulted(message=f"cut {TRIES - 1}")
    assert bench.trajectory.load() == OPENING


async def test_a_refusal_for_good_ends_it(bench: Bench) -> None:
    assert await bench.agent(ScriptedModel([ModelRejected("HTTP 401: no")])).run(OPENING) == Rejected(message="HTTP 401: no")


async def test_s09_a_reply_that_does_not_fit_is_asked_for_with_less_room(bench: Bench) -> None:
    too_long = ContextTooLong("window 8192", limit_tokens=8192, prompt_tokens=6145)
    model = ScriptedModel([too_long, submit()])
    assert isinstance(await bench.agent(model, limits=Bounds(tokens=100_000)).run(OPENING), Submitted)
    assert [request.max_tokens for request in model.requests] == [REPLY_TOKENS, 8192 - 6145 - 256]


async def test_s09_never_the_same_request_twice(bench: Bench) -> None:
    model = ScriptedModel([ContextTooLong("too long", limit_tokens=None) for _ in range(30)])
    outcome = await bench.agent(model, limits=Bounds(tokens=100_000)).run(OPENING)
    assert isinstance(outcome, LimitReached)
    assert outcome.limit == "context"
    asked = [request.max_tokens or 0 for request in model.requests]
    assert asked == sorted(set(asked), reverse=True)
    assert min(asked) >= LEAST_REPLY_TOKENS


async def test_s09_a_prompt_that_fills_the_window_ends_it_with_a_plain_reason(bench: Bench) -> None:
    model = ScriptedModel([ContextTooLong("the prompt has 9000 tokens", limit_tokens=8192, prompt_tokens=9000)])
    assert await bench.agent(model).run(OPENING) == LimitReached(limit="context", message="the prompt has 9000 tokens")
    assert len(model.requests) == 1


async def test_a_known_window_bounds_the_room_from_the_start(bench: Bench) -> None:
    big = calls(("note", {"text": "x"}))
    turn = Assistant(text="", tool_calls=big.tool_calls, finish_reason="tool_calls", usage=Usage(input_tokens=7_000, output_tokens=100))
    model = ScriptedModel([turn, submit()])
    await bench.agent(model, window_tokens=8192, limits=Bounds(tokens=100_000)).run(OPENING)
    first, second = (request.max_tokens or 0 for request in model.requests)
    assert 7_500 < first < 8_192
    assert LEAST_REPLY_TOKENS <= second < 8192 - 7_100


async def test_the_attempts_last_tokens_bound_the_reply(bench: Bench) -> None:
    model = ScriptedModel([calls(("note", {"text": "x"}), output_tokens=80), submit()])
    await bench.agent(model, limits=Bounds(tokens=100)).run(OPENING)
    assert [request.max_tokens for request in model.requests] == [100, 20]


async def test_a_sandbox_that_is_down_is_never_shown_to_the_model(bench: Bench, root: Path) -> None:
    class Down:
        kind: Any = "none"

        async def run(self, *args: Any, **more: Any) -> Any:
            raise SandboxUnavailable("bwrap is gone")

    bench.tools = Toolbox(root, Down())
    with pytest.raises(SandboxUnavailable):
        await bench.agent(ScriptedModel([calls(("run", {"command": "ls"}))])).run(OPENING)
    assert bench.trajectory.load() == OPENING


async def test_cancellation_ends_it_at_once_and_leaves_whole_steps(bench: Bench, root: Path) -> None:
    agent = bench.agent(ScriptedModel([calls(("note", {"text": "a"})), calls(("run", {"command": "touch running; sleep 30"}))]))
    attempt = asyncio.ensure_future(agent.run(OPENING))
    while not await asyncio.to_thread((root / "running").exists):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.005)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert len(bench.trajectory.load()) == 4


async def test_the_loop_over_http_from_prompt_to_submission(bench: Bench, endpoint: Endpoint) -> None:
    def reply(name: str, arguments: dict[str, str], tokens: int) -> Answer:
        call = json.dumps({"index": 0, "id": f"c{tokens}", "function": {"name": name, "arguments": json.dumps(arguments)}})
        return Answer(
            body=[
                b'data: {"choices":[{"delta":{"reasoning":"hm"}}],"usage":{"prompt_tokens":50,"completion_tokens":1}}\n\n',
                b'data: {"choices":[{"delta":{"tool_calls":[%s]}}],"usage":{"prompt_tokens":50,"completion_tokens":%d}}\n\n'
                % (call.encode(), tokens),
                b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
            ]
        )

    endpoint.answers = [reply("run", {"command": "echo hi"}, 30), reply("submit", {"summary": "hi"}, 12)]
    async with OpenAIModel(endpoint.url, model="m") as model:
        assert await bench.agent(model).run(OPENING) == Submitted(summary="hi")
    assert (bench.meter.input_tokens, bench.meter.output_tokens) == (100, 42)
    assert endpoint.asked[1].body["messages"][-1]["content"] == "exit code 0\nhi"
    assert sum(fact.output_tokens for fact in bench.of(ModelReplied)) == bench.meter.output_tokens


def test_the_shared_prefix_is_the_same_bytes_for_all_tasks_of_a_kind(root: Path) -> None:
    one = opening("coding", "Fix it.", workspace=Path("/w/1"), checks=["make test"])
    other = opening("coding", "Break it.", workspace=Path("/w/2"))
    assert one[0] == other[0]
    assert "/w/1" in one[1].text  # type: ignore[union-attr]
    assert "make test" in one[1].text  # type: ignore[union-attr]
    assert "/" not in one[0].text.replace("dates, numbers", "")  # type: ignore[union-attr]


async def test_the_meter_of_a_scripted_model_rises_like_a_clients() -> None:
    meter = Meter()
    await ScriptedModel([submit()]).reply([], (), session="s", meter=meter, max_tokens=None)
    assert (meter.input_tokens, meter.output_tokens) == (100, 10)
