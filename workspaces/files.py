"""Reading and writing files of a workspace on an agent's behalf. Bytes in, bytes out.

Covers: every folder on the way is opened without following links; a link is resolved by hand and may lead only to places inside the
workspace; writing replaces the file in one step and never touches `.git`.
Does not cover: hard links made from outside.

Paths are relative to the workspace, or absolute beneath it. All functions raise PathRefused (text fit for the model) for anything else,
and plain OSError (FileNotFoundError, IsADirectoryError, NotADirectoryError …) otherwise. They block: small files, local disk.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workspaces.errors import PathRefused

READ_LIMIT_BYTES = 64 * 1024 * 1024
LINKS = 40
"""How many links one path may lead through, as in the kernel."""

EntryKind = Literal["file", "folder", "link", "other"]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`name` is the last part of the path; `size_bytes` None for all but files."""

    name: str
    kind: EntryKind
    size_bytes: int | None


def read_file(root: Path, path: str, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
    """All bytes of a regular file. OSError with EFBIG when it is larger than `limit_bytes`."""
    with _Place(root, path) as place:
        handle = os.open(place.name, _FILE, dir_fd=place.folder)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{path} is no regular file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(limit_bytes + 1)
    finally:
        os.close(handle)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"holds more than {limit_bytes} bytes", path)
    return data


def write_file(root: Path, path: str, data: bytes) -> None:
    """Create or replace a file, missing folders included. An existing file keeps its mode."""
    with _Place(root, path, make_folders=True) as place:
        mode = _mode_to_keep(place, path)
        draft = f".stationmaster-{secrets.token_hex(8)}.tmp"
        handle = os.open(draft, _CREATE, 0o666, dir_fd=place.folder)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123  a descriptor, not a path
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(data)
            os.replace(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            os.unlink(draft, dir_fd=place.folder)
            raise


def list_files(root: Path, path: str = ".") -> tuple[Entry, ...]:
    """What a folder holds, sorted by name, `.git` left out."""
    with _opened_folder(root, path) as folder:
        return tuple(_entries(folder))


def walk_files(root: Path, path: str = ".") -> Iterator[str]:
    """Every regular file beneath a folder, relative to the workspace, in order; links are not followed, `.git` is left out."""
    with _Place(root, path) as place:
        start = place.parts
    waiting = ["/".join(start) or "."]
    while waiting:
        here = waiting.pop()
        try:
            entries = list_files(root, here)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # gone since, or closed to us: a search goes on with the rest
        prefix = "" if here == "." else f"{here}/"
        yield from (f"{prefix}{entry.name}" for entry in entries if entry.kind == "file")
        waiting.extend(f"{prefix}{entry.name}" for entry in reversed(entries) if entry.kind == "folder")


def _entries(folder: int) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        if name == ".git":
            continue
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        match stat.S_IFMT(found.st_mode):
            case stat.S_IFREG:
                yield Entry(name=name, kind="file", size_bytes=found.st_size)
            case stat.S_IFDIR:
                yield Entry(name=name, kind="folder", size_bytes=None)
            case stat.S_IFLNK:
                yield Entry(name=name, kind="link", size_bytes=None)
            case _:
                yield Entry(name=name, kind="other", size_bytes=None)


@contextmanager
def _opened_folder(root: Path, path: str) -> Generator[int]:
    with _Place(root, path) as place:
        handle = os.open(place.name, _FOLDER, dir_fd=place.folder)
        try:
            yield handle
        finally:
            os.close(handle)


def _mode_to_keep(place: _Place, path: str) -> int | None:
    """Of the file that is about to be replaced; None when there is none."""
    if any(part.lower() == ".git" for part in place.parts):
        raise PathRefused(f"{path}: `.git` is git's own; use git commands to change it")
    try:
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", path)
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{path} is no regular file")
    return stat.S_IMODE(found.st_mode) & 0o777


class _Place:
    """Where a path leads: `folder` is an open descriptor, `name` an entry in it that is no link (or does not exist), `parts` the way there."""

    def __init__(self, root: Path, path: str, *, make_folders: bool = False) -> None:
        self._root = root
        self._path = path
        self._make_folders = make_folders
        self._folders: list[int] = []
        self.parts: list[str] = []
        self.name = "."

    @property
    def folder(self) -> int:
        return self._folders[-1]

    def __enter__(self) -> _Place:
        if "\0" in self._path:
            raise PathRefused("a path cannot hold a zero byte")
        try:
            self._folders.append(os.open(self._root, _FOLDER))
            self._walk(self._split(self._path, beneath_root=False))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._folders:
            os.close(self._folders.pop())

    def _split(self, path: str, *, beneath_root: bool) -> list[str]:
        """The parts of a path seen from the folder that `parts` leads to; from the top when it is absolute."""
        if not path.startswith("/"):
            return [part for part in path.split("/") if part not in {"", "."}]
        for top in (self._root, self._root.resolve()):
            if path == f"{top}" or path.startswith(f"{top}/"):
                if beneath_root:
                    self._back_to_top()
                return [part for part in path.removeprefix(f"{top}").split("/") if part not in {"", "."}]
        raise self._refused()

    def _refused(self) -> PathRefused:
        return PathRefused(f"{self._path} leads out of the workspace; paths must be relative to {self._root}, or beneath it")

    def _back_to_top(self) -> None:
        while len(self._folders) > 1:
            os.close(self._folders.pop())
        self.parts.clear()

    def _walk(self, ahead: list[str]) -> None:
        """Each part is entered, climbed out of, or replaced by what its link says, until the last one is known to be no link."""
        links = 0
        while ahead:
            part = ahead.pop(0)
            if part == "..":
                self._climb()
                continue
            target = self._link(part)
            if target is not None:
                links += 1
                if links > LINKS:
                    raise OSError(errno.ELOOP, "too many links", self._path)
                ahead[:0] = self._split(target, beneath_root=True)
            elif ahead:
                self._enter(part)
            else:
                self.parts.append(part)
                self.name = part
                return
        self.name = "."

    def _link(self, part: str) -> str | None:
        try:
            return os.readlink(part, dir_fd=self.folder)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise

    def _climb(self) -> None:
        if not self.parts:
            raise self._refused()
        self.parts.pop()
        os.close(self._folders.pop())

    def _enter(self, part: str) -> None:
        try:
            handle = os.open(part, _FOLDER, dir_fd=self.folder)
        except FileNotFoundError:
            if not self._make_folders or part.lower() == ".git":
                raise
            os.mkdir(part, dir_fd=self.folder)
            handle = os.open(part, _FOLDER, dir_fd=self.folder)
        self._folders.append(handle)
        self.parts.append(part)
