"""An attempt's conversation on disk: one JSON message a line, appended whole steps at a time, never rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agents.messages import Message


class Trajectory:
    """The file need not exist; its folder must."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[Message]:
        """All messages. A torn last line is cut off; tool calls left without a result are closed as interrupted (an open submit stays open)."""
        raise NotImplementedError

    def append(self, messages: Sequence[Message]) -> None:
        """One write. Survives the death of the process; not flushed to the disk's platters."""
        raise NotImplementedError
