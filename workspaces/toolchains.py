"""Which folders below hidden ones a command needs to see all the same: PATH's entries, and the interpreters that they lead to.

Covers: virtual environments and the Python they were made from, pyenv and its kind, conda, uv, pipx, node, rustup, single binaries; links on the way
to them.
Does not cover: libraries elsewhere in a home directory. A folder is shown whole only when it is known for an interpreter's own; never a home itself,
never one that holds or lies in a folder of the station's, never one where credentials are kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PRIVATE = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".claude", ".codex", ".netrc", ".npmrc"}
)
"""Names directly below a home that are never shown, nor anything in them."""
SHARED = frozenset({".local", ".cargo", "bin", ".config"})
"""Names directly below a home that look like a prefix but hold other things too: of these only single folders are shown."""
PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg")
LINKS = 40


@dataclass(slots=True)
class Sight:
    """What to show again. `links` are (place, what the link says); `folders` may be files too."""

    folders: set[Path]
    links: dict[Path, str]


class Toolchains:
    """`hidden` are real folders that a command does not see; `homes` those among them that are home directories; `forbidden` the station's."""

    def __init__(self, *, hidden: Sequence[Path], homes: Sequence[Path], forbidden: Sequence[Path]) -> None:
        self._hidden = tuple(hidden)
        self._homes = frozenset(homes)
        self._forbidden = tuple(forbidden)
        self._seen: set[Path] = set()
        self._interpreters: set[Path] = set()
        self.sight = Sight(folders=set(), links={})

    def show_path(self, path: str) -> Sight:
        """Everything that the entries of a PATH need."""
        for entry in path.split(os.pathsep):
            if not entry.startswith("/"):
                continue
            # What we may not look at (root's folders on the PATH after a plain `su`), a command could not use either.
            with contextlib.suppress(PermissionError):
                folder = self._trace(Path(entry))
                if folder is not None and folder.is_dir() and self._is_hidden(folder):
                    self._show_tools(folder)
        return self.sight

    def _show_tools(self, folder: Path) -> None:
        self._show(folder)
        self._show_prefix(folder)
        for tool in _children(folder):
            real = self._trace(tool) if tool.is_symlink() else tool
            if real is None or not real.is_file():
                continue
            if real.parent != folder:
                self._show_program(real)
            interpreter = _shebang(real)
            if interpreter is not None and interpreter not in self._interpreters:
                self._interpreters.add(interpreter)
                found = self._trace(interpreter)
                if found is not None and found.is_file():
                    self._show_program(found)

    def _show_program(self, program: Path) -> None:
        """A program's whole prefix when it is one, else only the file."""
        if self._is_hidden(program) and not self._show_prefix(program.parent):
            self._show(program)

    def _show_prefix(self, folder: Path) -> bool:
        """Show what belongs to the tools in `folder` (a bin or shims). Whether that covers the folder itself."""
        prefix = folder.parent
        if folder in self._seen:
            return self._covered(folder)
        self._seen.add(folder)
        if (folder / "rustup").exists():
            self._show(Path(os.environ.get("RUSTUP_HOME", prefix.parent / ".rustup")).resolve())
        base = _venv_base(prefix)
        if base is not None:
            found = self._trace(base)
            if found is not None and found.is_dir() and self._is_hidden(found):
                self._show_tools(found)
        for part in self._parts_of_prefix(prefix, folder):
            self._show(part)
        return self._covered(folder)

    def _parts_of_prefix(self, prefix: Path, folder: Path) -> Iterator[Path]:
        libraries = [path.parent.resolve() for path in prefix.glob("lib/python3*/os.py")]
        libraries += [path for path in (prefix / "lib" / "node_modules",) if path.is_dir()]
        if self._is_shared(prefix):
            yield from libraries
        elif _is_version_switch(folder):
            yield prefix
        elif libraries or (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir():
            # A project that is its own virtual environment holds more than that.
            yield from (prefix / name for name in PREFIX_PARTS) if (prefix / ".git").exists() else (prefix,)

    def _is_shared(self, prefix: Path) -> bool:
        return prefix in self._homes or (prefix.parent in self._homes and prefix.name in SHARED)

    def _show(self, path: Path) -> None:
        if path.exists() and self._is_hidden(path) and self._may_be_shown(path):
            self.sight.folders.add(path)

    def _may_be_shown(self, path: Path) -> bool:
        if any(path == home or path in home.parents for home in self._hidden):
            return False
        if any(path.is_relative_to(folder) or folder.is_relative_to(path) for folder in self._forbidden):
            return False
        return not any(path.is_relative_to(home) and path.relative_to(home).parts[0] in PRIVATE for home in self._homes)

    def _covered(self, path: Path) -> bool:
        return not self._is_hidden(path) or any(path.is_relative_to(folder) for folder in self.sight.folders)

    def _is_hidden(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._hidden)

    def _trace(self, path: Path) -> Path | None:
        """The real path, with every hidden link on the way noted; None when it leads nowhere."""
        done = Path("/")
        ahead = list(path.parts[1:])
        for _ in range(LINKS * 16):
            if not ahead:
                return done if done.exists() else None
            part = ahead.pop(0)
            if part == "..":
                done = done.parent
                continue
            here = done / part
            try:
                target = os.readlink(here)  # noqa: PTH115  as it stands, not normalized
            except OSError:
                done = here
                continue
            if self._is_hidden(here) and self._may_be_shown(here):
                self.sight.links[here] = target
            done = Path("/") if target.startswith("/") else done
            ahead[:0] = [piece for piece in target.split("/") if piece not in {"", "."}]
        return None


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_version_switch(folder: Path) -> bool:
    """pyenv, rbenv, nodenv, asdf, mise: a folder of stand-ins beside the versions that they stand for."""
    root = folder.parent
    return (
        folder.name in {"shims", "bin"}
        and any((root / name).is_dir() for name in ("versions", "installs"))
        and ((root / "shims").is_dir() or (root / "libexec").is_dir())
    )


def _venv_base(prefix: Path) -> Path | None:
    """The folder of the Python that a virtual environment was made from."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    home = values.get("home", "")
    return Path(home) if home.startswith("/") else None


def _shebang(program: Path) -> Path | None:
    """The interpreter that a script names by its absolute path."""
    try:
        with program.open("rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!/"):
        return None
    words = os.fsdecode(line[2:]).split()
    return Path(words[0]) if words else None
