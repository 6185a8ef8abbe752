"""What an attempt's conversation begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agents.messages import Message, System, User
from agents.roles import accounting, coding, document

Kind = Literal["coding", "document", "accounting"]

FOR_ALL = """
Use one of the tools in every reply; several calls in one reply are fine when they do not depend on each other. Paths are relative to the workspace's top \
folder. Everything in the workspace is recorded for you: do not commit, and do not create branches.

When the checks pass, call `submit` with a short summary. If the task cannot be done, `submit` too and say why; a false claim is worse than none.
"""
"""The end of each role's prompt."""


def opening(kind: Kind, prompt: str, *, workspace: Path, checks: Sequence[str] = ()) -> list[Message]:
    """The system prompt of `kind` (the same bytes for all its tasks) and the task itself with the workspace's path and its checks.

    No other path of this machine is named: what a model is told of, it may try to reach.
    """
    parts = [prompt.strip(), f"Your workspace is {workspace}."]
    if checks:
        commands = "\n".join(f"    {check}" for check in checks)
        parts.append(
            "These commands must succeed before the work counts as done. They run in a fresh checkout of everything that git does not "
            f"ignore:\n{commands}"
        )
    return [System(text=system_prompt(kind)), User(text="\n\n".join(parts))]


def system_prompt(kind: Kind) -> str:
    match kind:
        case "coding":
            return coding.PROMPT + FOR_ALL
        case "document":
            return document.PROMPT + FOR_ALL
        case "accounting":
            return accounting.PROMPT + FOR_ALL
