"""What an attempt is told at its start: the task, and, from the second attempt on, what became of the one before."""

from __future__ import annotations

from collections.abc import Sequence

from agents.messages import Assistant, Message, ToolResult, User
from agents.submission import SUBMIT, summary_of
from orchestrator.checks import REFUSED

ACCOUNT_CHARACTERS = 6_000


def with_history(opening: Sequence[Message], *, before: Sequence[Message], failure: str, comments: Sequence[str]) -> list[Message]:
    """The opening with an account of the last attempt (`before` is its trajectory, empty when there was none) and what people said.

    All goes into the last user message: some chat templates refuse two in a row.
    """
    parts = [part for part in (_account(before, failure), _said(comments)) if part]
    if not parts:
        return list(opening)
    *first, last = opening
    assert isinstance(last, User)
    return [*first, User(text="\n\n".join([last.text, *parts]))]


def refusals(trajectory: Sequence[Message]) -> int:
    """How often checks sent this attempt's work back already."""
    return len(_refused(trajectory))


def _refused(trajectory: Sequence[Message]) -> list[str]:
    results = [message for message in trajectory if isinstance(message, ToolResult) and message.name == SUBMIT]
    return [result.text for result in results if result.text.startswith(REFUSED)]


def _account(before: Sequence[Message], failure: str) -> str:
    if not before:
        return ""
    lines = ["An earlier attempt at this task was not accepted. Its files are gone: this workspace is fresh."]
    if summary := _last_summary(before):
        lines.append(f"It said of its work: {summary}")
    if failure:
        lines.append(f"It ended with: {failure}")
    if refused := _refused(before):
        lines.append(f"The last answer to its submission was:\n{refused[-1]}")
    return "\n\n".join(lines)[:ACCOUNT_CHARACTERS]


def _last_summary(before: Sequence[Message]) -> str:
    calls = [call for message in before if isinstance(message, Assistant) for call in message.tool_calls]
    return next((summary for call in reversed(calls) if (summary := summary_of(call))), "")


def _said(comments: Sequence[str]) -> str:
    return "\n\n".join(f"A person who reviews this task says:\n{comment}" for comment in comments)


def spoken(comments: Sequence[str]) -> list[User]:
    """What people said while the agent was at work."""
    return [User(text=comment) for comment in comments]
