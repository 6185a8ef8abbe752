"""What a person at the terminal must act on, and what stops a worker."""

from __future__ import annotations


class UserError(Exception):
    """Shown as `error: …`, an empty line and `hint: …`; the command exits with 2."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StationDown(UserError):
    """The command needs a running station and none answers on the home's socket."""


class LeaseLost(Exception):
    """A write carried an old (attempt, fencing token): somebody else owns the task now. Stop at once, clean up your own children."""


class IllegalTransition(Exception):
    """A task was asked to go from a state to one that its table does not allow: a bug, or two commands at once."""
