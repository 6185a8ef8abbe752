"""The task file: TOML, checked as a whole before anything is queued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.task import Kind, Limits, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task as written, before git was asked. `repo` is absolute, or None when the file names none; `base` is a revision or None."""

    id: str
    title: str
    kind: Kind
    prompt: str
    repo: Path | None
    base: str | None
    checks: tuple[str, ...]
    after: tuple[str, ...]
    priority: int
    attempts: int
    limits: Limits
    agent: str


def parse_task_file(path: Path) -> list[TaskDraft]:
    """The tasks in the order of the file. A UserError that names file and line or key for the first thing that is wrong."""
    raise NotImplementedError


def check_drafts(drafts: Sequence[TaskDraft], *, source: str) -> None:
    """UserError for duplicate ids and cycles; `after` may name tasks that are queued already, which the queue checks."""
    raise NotImplementedError


def draft_task(*, id: str, title: str, prompt: str, kind: str = "coding", checks: Sequence[str] = (), after: Sequence[str] = (), priority: int = 0) -> TaskDraft:  # noqa: A002 - the task file's own word
    """One task from the command line, held to the task file's rules."""
    raise NotImplementedError


async def resolve_drafts(drafts: Sequence[TaskDraft], *, repo: Path | None, sandbox: Literal["bubblewrap", "none"]) -> list[TaskSpec]:
    """Asks git for each (repository, base) once. `repo` stands in where the file names none; UserError when there is neither, or git refuses."""
    raise NotImplementedError
