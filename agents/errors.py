"""Who must act on a failure decides its type.

ToolFailed          the model: the text goes back to it as a tool result
ModelUnavailable    the scheduler: the engine is down or refuses; the attempt waits and is not used up
ModelFault          the loop: this one reply is broken (cut stream, no finish reason); it is asked for again
ContextTooLong      the loop: the request does not fit the window; never sent again unchanged
TrajectoryDamaged   the scheduler, as other workspace errors: the attempt ends; what it had said is lost in part
"""

from __future__ import annotations

from pathlib import Path

from workspaces.errors import WorkspaceError


class ToolFailed(Exception):
    """A tool could not do what it was asked. The message is written for the model and says what to do instead."""


class ModelUnavailable(Exception):
    """No reply can be had now (connection refused, 429, 5xx after all retries). `retry_after_s` is the server's wish, if any."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelFault(Exception):
    """One reply ended broken: its text must never enter the history."""


class ContextTooLong(Exception):
    """The engine refused the request for its length. `limit_tokens` is the window and `prompt_tokens` the prompt's
    length as the engine named them, None when it did not.
    """

    def __init__(self, message: str, *, limit_tokens: int | None = None, prompt_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit_tokens = limit_tokens
        self.prompt_tokens = prompt_tokens


class ModelRejected(Exception):
    """The endpoint refuses this request for good (400, 401, 403, 404): asking again would not help."""


class TrajectoryDamaged(WorkspaceError):
    """A line of an attempt's conversation, other than its last, cannot be read any more. Lines count from 1."""

    def __init__(self, path: Path, *, line: int, reason: str) -> None:
        super().__init__(
            f"the conversation cannot go on: line {line} of {path} is damaged ({reason})",
            hint="`stationmaster retry` begins a new attempt; what is left of this one's files and words stays",
        )
        self.path = path
        self.line = line
