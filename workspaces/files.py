"""Reading and writing files of a workspace on an agent's behalf. Bytes in, bytes out.

Covers: every folder on the way is opened without following links; a link is resolved by hand and may lead only to places inside the
workspace; writing replaces the file in one step and never touches `.git`.
Does not cover: hard links made from outside.

Paths are relative to the workspace, or absolute beneath it. All functions raise PathRefused (text fit for the model) for anything else,
and plain OSError (FileNotFoundError, IsADirectoryError, NotADirectoryError …) otherwise. They block: small files, local disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

READ_LIMIT_BYTES = 64 * 1024 * 1024

EntryKind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`name` is the last part of the path; `size_bytes` None for all but files."""

    name: str
    kind: EntryKind
    size_bytes: int | None


def read_file(root: Path, path: str, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
    """All bytes of a regular file. OSError with EFBIG when it is larger than `limit_bytes`."""
    raise NotImplementedError


def write_file(root: Path, path: str, data: bytes) -> None:
    """Create or replace a file, missing folders included. An existing file keeps its mode."""
    raise NotImplementedError


def list_files(root: Path, path: str = ".") -> tuple[Entry, ...]:
    """What a folder holds, sorted by name, `.git` left out."""
    raise NotImplementedError


def walk_files(root: Path, path: str = ".") -> Iterator[str]:
    """Every regular file beneath a folder, relative to the workspace, in order; links are not followed, `.git` is left out."""
    raise NotImplementedError
