from __future__ import annotations

from agents.messages import Assistant, Message, System, ToolCall, ToolResult, User
from orchestrator.brief import refusals, with_history
from orchestrator.checks import REFUSED

OPENING: list[Message] = [System(text="You work."), User(text="Do it.")]


def submission(summary: str, answer: str) -> list[Message]:
    call = ToolCall(id="1", name="submit", arguments=f'{{"summary": "{summary}"}}')
    return [
        Assistant(text="", tool_calls=(call,), finish_reason="tool_calls"),
        ToolResult(call_id="1", name="submit", text=answer, ok=False),
    ]


def test_a_first_attempt_begins_with_the_opening_alone() -> None:
    assert with_history(OPENING, before=[], failure="", comments=[]) == OPENING


def test_a_new_attempt_hears_what_the_last_one_said_and_how_it_ended() -> None:
    before = [*OPENING, *submission("added the test", f"{REFUSED}\n$ pytest\n1 failed")]
    first, last = with_history(OPENING, before=before, failure="1 of 1 checks failed", comments=["Mind the rounding."])
    assert first == OPENING[0]
    assert isinstance(last, User)
    for part in ("Do it.", "added the test", "1 of 1 checks failed", "1 failed", "Mind the rounding."):
        assert part in last.text


def test_a_submission_that_is_no_json_has_no_summary() -> None:
    broken = Assistant(text="", tool_calls=(ToolCall(id="1", name="submit", arguments="{"),), finish_reason="tool_calls")
    _, last = with_history(OPENING, before=[broken], failure="limit", comments=[])
    assert isinstance(last, User)
    assert "It said" not in last.text


def test_the_last_valid_submission_is_what_it_said() -> None:
    broken = Assistant(text="", tool_calls=(ToolCall(id="2", name="submit", arguments="{}"),), finish_reason="tool_calls")
    before = [*submission("first", "no"), *submission("second", "no"), broken]
    _, last = with_history(OPENING, before=before, failure="limit", comments=[])
    assert isinstance(last, User)
    assert "It said of its work: second" in last.text


def test_only_failed_checks_count_as_refusals() -> None:
    assert refusals([*OPENING, *submission("a", f"{REFUSED} no"), *submission("b", "a person spoke"), *submission("c", REFUSED)]) == 2
