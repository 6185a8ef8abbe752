"""Merges as they are written down: before the branch moves, so that a merge which landed just before a crash is recognised.

    begin → prepared → landed | refused

At a start, `unfinished` gives those that were under way: `prepared` ones may have landed (ask git), the others have not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.eventlog import Journal
from orchestrator.store import Database

MergeState = Literal["begun", "prepared", "landed", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRecord:
    """`target_commit` is the branch's tip that the merge was computed on, `commit` the merge itself: None until it is prepared."""

    task: str
    repo: str
    target: str
    snapshot_commit: str
    target_commit: str | None
    commit: str | None
    state: MergeState


class Merges:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def begin(self, task: str, target: str | None = None) -> MergeRecord:
        """To `merging`, from `verified`, `in-review` or `conflicted`. `target` None means the task's own target branch.

        UserError when the task cannot be merged now, has no snapshot, or no branch to land on.
        """
        raise NotImplementedError

    async def prepared(self, task: str, *, target_commit: str, commit: str) -> None:
        """Written before the branch is moved. IllegalTransition unless the task is `merging`."""
        raise NotImplementedError

    async def landed(self, task: str, commit: str) -> None:
        """To `merged`, with MergeLanded."""
        raise NotImplementedError

    async def refused(self, task: str, reason: str, conflicts: Sequence[str] = ()) -> None:
        """To `conflicted` when there are conflicts, else back to `in-review`, with MergeRefused."""
        raise NotImplementedError


def unfinished(db: Database) -> list[MergeRecord]:
    """Merges of tasks that are `merging`, oldest first."""
    raise NotImplementedError
