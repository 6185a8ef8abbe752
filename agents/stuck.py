"""Going round in circles, and answering without acting: told by the history alone, so that a resumed attempt is judged the same.

A circle is a run of calls *with the same results* that repeats itself; polling something whose answer changes is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from agents.decoding import NotUnderstood, decoded
from agents.messages import Assistant, Message, ToolResult, User
from agents.outcome import Stuck

HINT_AFTER = 3
STUCK_AFTER = 6
LONGEST_CIRCLE = 3
"""Calls in a circle: A A A, A B A B, A B C A B C."""
SILENT_TURNS = 3

NUDGE = "You called no tool. Go on with the task by calling tools. When it is done, call `submit`; if it cannot be done, call `submit` and say why."
CUT_OFF = "Your reply was cut off at its length limit before it called a tool. Say less, and do the work in smaller pieces."
MARKUP = "Your tool call arrived as plain text, so nothing was run. Call the tool again through the tool interface."
HINT = (
    "The same calls gave the same results {times} times. Doing it again will not change that: read the last result closely, "
    "then try something else, or call `submit` and say what is in the way."
)
_NUDGES = frozenset({NUDGE, CUT_OFF, MARKUP})
_MARKUP = re.compile(r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|tool_call")
_DURATION = re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|secs|seconds)\b")

_Round: TypeAlias = tuple[str, str, str]
"""A call's name, its arguments and its result."""


def stuck(history: Sequence[Message]) -> Stuck | None:
    if _silent_turns(history) >= SILENT_TURNS:
        return Stuck(message=f"{SILENT_TURNS} replies in a row called no tool")
    times = _times_round(_rounds(history))
    return Stuck(message=f"the same calls with the same results, {times} times") if times >= STUCK_AFTER else None


def remark(before: Sequence[Message], turn: Assistant, results: Sequence[ToolResult]) -> list[User]:
    """What the agent is told after a turn that got it nowhere; [] after any other."""
    if not turn.tool_calls:
        return [User(text=CUT_OFF if turn.finish_reason == "length" else MARKUP if _MARKUP.search(turn.text) else NUDGE)]
    times = _times_round(_rounds([*before, turn, *results]))
    due = times >= HINT_AFTER > _times_round(_rounds(before))
    return [User(text=HINT.format(times=times))] if due else []


def _silent_turns(history: Sequence[Message]) -> int:
    """Replies without a call since the last call, or since a person spoke."""
    count = 0
    for message in reversed(history):
        match message:
            case Assistant(tool_calls=()):
                count += 1
            case User(text=text) if text in _NUDGES:
                continue
            case _:
                break
    return count


def _rounds(history: Sequence[Message]) -> list[_Round]:
    """The last answered calls with their results, newest first: as many as can make a circle."""
    results: dict[str, str] = {}
    rounds: list[_Round] = []
    for message in reversed(history):
        match message:
            case ToolResult(call_id=call_id, text=text):
                results[call_id] = text
            case Assistant(tool_calls=calls):
                rounds += [(call.name, call.arguments, results[call.id]) for call in reversed(calls) if call.id in results]
                results = {}
            case _:
                pass
        if len(rounds) > STUCK_AFTER * LONGEST_CIRCLE:
            break
    return rounds


def _times_round(rounds: Sequence[_Round]) -> int:
    """How often the newest circle has been walked; `rounds` newest first."""
    most = 0
    for length in range(1, LONGEST_CIRCLE + 1):
        same = 0
        while same + length < len(rounds) and _alike(rounds[same], rounds[same + length]):
            same += 1
        if same:
            most = max(most, same // length + 1)
    return most


def _alike(one: _Round, other: _Round) -> bool:
    """Cheapest first: nearly all rounds differ in their arguments already."""
    if one[0] != other[0] or not (one[1] == other[1] or _normal(one[1]) == _normal(other[1])):
        return False
    return one[2] == other[2] or _DURATION.sub("…", one[2]) == _DURATION.sub("…", other[2])


def _normal(arguments: str) -> str:
    """Arguments without what does not matter: white space and the order of keys."""
    try:
        return msgspec.json.encode(decoded(arguments), order="sorted").decode()
    except (NotUnderstood, RecursionError):
        return arguments.strip()
