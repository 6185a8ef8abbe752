"""What an attempt's conversation begins with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agents.messages import Message

Kind = Literal["coding", "document", "accounting"]


def opening(kind: Kind, prompt: str, *, workspace: Path, checks: Sequence[str] = ()) -> list[Message]:
    """The system prompt of `kind` (the same bytes for all its tasks) and the task itself with the workspace's path and its checks."""
    raise NotImplementedError
