"""The call that ends the work: valid, not cut off, and not beside a call that failed. It stays open until the checks have answered it."""

from __future__ import annotations

from collections.abc import Sequence

from agents.errors import ToolFailed
from agents.history import open_calls
from agents.messages import Assistant, Message, ToolCall, ToolResult
from agents.outcome import Submitted
from agents.tools.arguments import AnyArguments, Note, Submit, parsed

SUBMIT = "submit"
NOTE = "note"
READ_ONLY = frozenset({"read", "list", "search"})
MUTATING = frozenset({"edit", "write", "run"})

CUT_OFF = "Your reply was cut off at its length limit, so this call was not run: it may be incomplete. Send it again, in smaller pieces if it is long."
BESIDE_A_FAILURE = "Not submitted: another call of the same reply failed. Look at its result first."
TWICE = "Submitted already by another call of the same reply."
A_PERSON_SPOKE = "Not submitted yet: a person has something to say, see below. Take it into account, then submit again."


def objection(call: ToolCall, turn: Assistant, results: Sequence[ToolResult]) -> str | None:
    """Why a call of this turn must not run, given the results of those before it; None when it may."""
    if turn.finish_reason == "length" and call.name not in READ_ONLY:
        return CUT_OFF
    if call.name == SUBMIT and not all(result.ok for result in results):
        return BESIDE_A_FAILURE
    if call.name == SUBMIT and any(result.name == SUBMIT for result in results):
        return TWICE
    return None


def in_order(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """As the model gave them, submit last."""
    return sorted(calls, key=lambda call: call.name == SUBMIT)


def open_submission(history: Sequence[Message]) -> ToolCall | None:
    return next((call for call in open_calls(history) if call.name == SUBMIT), None)


def submitted(history: Sequence[Message]) -> Submitted | None:
    call = open_submission(history)
    return None if call is None else Submitted(summary=summary_of(call))


def summary_of(call: ToolCall) -> str:
    """What a call says of the work; '' when it is no valid `submit`."""
    told = _told(call)
    return told.summary if isinstance(told, Submit) else ""


def note_text(call: ToolCall) -> str:
    """What a call leaves for the reviewer; '' when it is no valid `note`."""
    told = _told(call)
    return told.text if isinstance(told, Note) else ""


def answer(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call_id=call.id, name=call.name, text=text, ok=False)


def _told(call: ToolCall) -> AnyArguments | None:
    try:
        return parsed(call)
    except ToolFailed:
        return None
