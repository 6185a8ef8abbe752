"""What changed between two commits of a hub, as data.

Git lists the files and counts their lines; texts are asked for only as far as a person could read them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from workspaces.errors import GitFailed
from workspaces.git import DIFF_OPTIONS, Git

FileStatus = Literal["added", "deleted", "modified", "renamed", "copied", "type-changed"]
STATUS: dict[str, FileStatus] = {"A": "added", "D": "deleted", "M": "modified", "R": "renamed", "C": "copied", "T": "type-changed"}
ABSENT = "000000"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much text a diff may hold; what is beyond is listed and counted, and left out with a note."""

    file_lines: int = 20_000
    all_lines: int = 200_000
    file_bytes: int = 4 * 1024 * 1024
    all_bytes: int = 64 * 1024 * 1024
    line_characters: int = 5_000
    paths_bytes: int = 500_000
    """How many bytes of paths fit on git's command line, with room to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A file as `--raw --numstat` tell of it, with paths as git has them."""

    path: bytes
    old_path: bytes | None
    blobs: tuple[str, str]
    diff: FileDiff

    @property
    def lines(self) -> int:
        return (self.diff.insertions or 0) + (self.diff.deletions or 0)

    @property
    def patches(self) -> int:
        """How many patches git writes for it: a change of type is a deletion and an addition."""
        return 2 if self.diff.status == "type-changed" else 1


async def diff_commits(hub: Path, old: str, new: str, *, limits: Limits = Limits()) -> tuple[FileDiff, ...]:
    """The files that differ, in git's order. `hub` is the bare repository's path. Raises GitFailed."""
    git = Git(git_dir=hub)
    listed = _listing(await git.run("diff-tree", "-r", "-z", "--raw", "--numstat", *DIFF_OPTIONS, old, new))
    sizes = await _sizes(git, listed)
    notes = [*_leave_out(listed, sizes, limits)]
    shown = [file for file, note in zip(listed, notes, strict=True) if not note]
    patches = iter(await _patches(git, old, new, shown, everything=len(shown) == len(listed)))
    return tuple(
        replace(file.diff, note=note) if note else _with_hunks(file, [next(patches) for _ in range(file.patches)], limits.line_characters)
        for file, note in zip(listed, notes, strict=True)
    )


def _listing(out: bytes) -> list[_Listed]:
    """Raw entries (`:old new oid oid S`, path, for renames another path) and then the counts, in the same order."""
    fields = out.split(b"\0")
    raws: list[tuple[list[str], bytes | None, bytes]] = []
    at = 0
    while at < len(fields) and fields[at].startswith(b":"):
        words = fields[at].decode()[1:].split()
        two = words[4][0] in "RC"
        raws.append((words, fields[at + 1] if two else None, fields[at + 2] if two else fields[at + 1]))
        at += 3 if two else 2
    return [_listed(raw, counts) for raw, counts in zip(raws, _counts(fields[at:]), strict=True)]


def _counts(fields: Sequence[bytes]) -> Iterator[tuple[int | None, int | None]]:
    """(insertions, deletions) a file. For a rename the path field is empty and two paths follow."""
    waiting = iter(fields)
    for field in waiting:
        if not field:
            continue
        added, removed, path = field.split(b"\t", 2)
        if not path:
            next(waiting)
            next(waiting)
        yield (None, None) if added == b"-" else (int(added), int(removed))


def _listed(raw: tuple[list[str], bytes | None, bytes], counts: tuple[int | None, int | None]) -> _Listed:
    (old_mode, new_mode, old_blob, new_blob, letter), old_path, path = raw
    diff = FileDiff(
        path=_text(path),
        old_path=None if old_path is None else _text(old_path),
        status=STATUS[letter[0]],
        old_mode=None if old_mode == ABSENT else old_mode,
        new_mode=None if new_mode == ABSENT else new_mode,
        binary=counts[0] is None,
        insertions=counts[0],
        deletions=counts[1],
        hunks=(),
    )
    return _Listed(path=path, old_path=old_path, blobs=(old_blob, new_blob), diff=diff)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


async def _sizes(git: Git, listed: Sequence[_Listed]) -> dict[str, int]:
    """The size of every blob, in bytes. What is no blob here (a submodule's commit, the absent side) has none."""
    blobs = sorted({blob for file in listed for blob in file.blobs})
    said = await git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin="".join(f"{blob}\n" for blob in blobs).encode())
    pairs = (line.split(" ", 1) for line in said.decode().splitlines())
    return {blob: int(size) for blob, size in pairs if size.isdigit()}


def _leave_out(listed: Sequence[_Listed], sizes: dict[str, int], limits: Limits) -> Iterator[str]:
    """For each file why its text is not shown, '' when it is."""
    lines_left, bytes_left, paths_left = limits.all_lines, limits.all_bytes, limits.paths_bytes
    for file in listed:
        size = sum(sizes.get(blob, 0) for blob in file.blobs)
        paths = len(file.path) + len(file.old_path or b"") + 2
        if file.diff.binary:
            yield f"binary: {sizes.get(file.blobs[0], 0):,} → {sizes.get(file.blobs[1], 0):,} bytes"
        elif size > limits.file_bytes or file.lines > limits.file_lines:
            yield f"too large to show: {file.lines:,} lines changed, {size:,} bytes on both sides"
        elif file.lines > lines_left or size > bytes_left or paths > paths_left:
            yield f"not shown, the whole change is too large: {file.lines:,} lines changed"
        else:
            lines_left, bytes_left, paths_left = lines_left - file.lines, bytes_left - size, paths_left - paths
            yield ""


async def _patches(git: Git, old: str, new: str, shown: Sequence[_Listed], *, everything: bool) -> list[bytes]:
    """One patch after another, as many as the files have, in their order."""
    if not shown:
        return []
    paths = [] if everything else [path.decode("utf-8", "surrogateescape") for file in shown for path in (file.old_path, file.path) if path]
    out = await git.run("diff-tree", "-r", "-p", *DIFF_OPTIONS, old, new, "--", *paths)
    # Lines of content begin with ' ', '+', '-' or '\', so this is always a header.
    patches = re.split(rb"^diff --git ", out, flags=re.MULTILINE)[1:]
    if len(patches) != sum(file.patches for file in shown):
        raise GitFailed(("git", "diff-tree", "-p"), 0, f"{len(patches)} patches for {len(shown)} files")
    return patches


def _with_hunks(file: _Listed, patches: Sequence[bytes], line_characters: int) -> FileDiff:
    seen: Counter[bytes] = Counter()
    hunks: list[Hunk] = []
    cut = False
    for patch in patches:
        for part in re.split(rb"^(?=@@ )", patch, flags=re.MULTILINE)[1:]:
            header, _, body = part.partition(b"\n")
            lines = [_text(line) for line in body.removesuffix(b"\n").split(b"\n")]
            cut = cut or any(len(line) > line_characters for line in lines)
            shown = tuple(line if len(line) <= line_characters else f"{line[:line_characters]}…" for line in lines)
            hunks.append(Hunk(id=_hunk_id(file.path, body, seen[body]), header=_text(header), lines=shown))
            seen[body] += 1
    return replace(file.diff, hunks=tuple(hunks), note=_note(file.diff, bool(hunks), line_characters if cut else None))


def _hunk_id(path: bytes, body: bytes, repetition: int) -> str:
    """Line numbers stay out of it; equal hunks of one file differ by their order."""
    return hashlib.sha256(b"%b\0%d\0%b" % (path, repetition, body)).hexdigest()[:8]


def _note(diff: FileDiff, has_text: bool, cut_at: int | None) -> str:
    if "160000" in {diff.old_mode, diff.new_mode}:
        return "a submodule's commit"
    if cut_at is not None:
        return f"lines are cut at {cut_at:,} characters"
    if has_text:
        return ""
    if diff.old_mode != diff.new_mode and diff.status == "modified":
        return "only the mode changed"
    return "the content is the same" if diff.status in {"renamed", "copied"} else "empty file"
