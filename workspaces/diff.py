"""What changed between two commits of a hub, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FileStatus = Literal["added", "deleted", "modified", "renamed", "copied", "type-changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """`lines` carry their leading ' ', '+', '-' or '\\'. Bytes that are no UTF-8 show as \\xNN; control characters stay.

    `id` is 8 hex digits of path and content: it survives changes elsewhere in the file.
    """

    id: str
    header: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """Insertions and deletions are None for a binary file. `hunks` is empty when there is no text to show (`note` says why).

    Modes are git's, like 100644; None on the side where the file does not exist.
    """

    path: str
    old_path: str | None
    status: FileStatus
    old_mode: str | None
    new_mode: str | None
    binary: bool
    insertions: int | None
    deletions: int | None
    hunks: tuple[Hunk, ...]
    note: str = ""


async def diff_commits(hub: Path, old: str, new: str) -> tuple[FileDiff, ...]:
    """The files that differ, in git's order. `hub` is the bare repository's path. Raises GitFailed."""
    raise NotImplementedError
