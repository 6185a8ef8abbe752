"""What an attempt's conversation begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agents.messages import Message, System, User
from agents.roles import accounting, coding, document

Kind = Literal["coding", "document", "accounting"]


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
            return coding.PROMPT
        case "document":
            return document.PROMPT
        case "accounting":
            return accounting.PROMPT
