"""What a person decides about a task. A decision that does not fit the task's state is a `UserError` that says what does."""

from __future__ import annotations

from orchestrator.eventlog import Journal


class Decisions:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def cancel(self, task: str) -> None:
        """To `cancelled`, also while an agent is at work: its next write gets LeaseLost. The worker should be stopped at once (StateChanged is published)."""
        raise NotImplementedError

    async def retry(self, task: str, comment: str = "") -> None:
        """An ended task is queued again for a new attempt, with its faults forgiven; the comment goes to the agent."""
        raise NotImplementedError

    async def approve(self, task: str) -> None:
        """The present snapshot may be merged; `verified` becomes `in-review`. UserError when there is no snapshot."""
        raise NotImplementedError

    async def reject(self, task: str, comment: str = "") -> None:
        """With a comment: queued as a new attempt, which hears the comment. Without: `rejected`."""
        raise NotImplementedError

    async def say(self, task: str, text: str) -> None:
        """The agent hears it after its present step, or when it starts. UserError for a task that has ended."""
        raise NotImplementedError

    async def look(self, task: str) -> None:
        """A person has looked at the present snapshot (a later diff can start there); `verified` becomes `in-review`."""
        raise NotImplementedError
