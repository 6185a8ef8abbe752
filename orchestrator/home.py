"""Where everything of one station lies: its state directory and the paths in it.

Covers: the folder and the token are made for their owner only (0700 and 0600), and the socket's folder too.
Does not cover: a folder that its owner has since opened to others; `Home.ensure` tightens it again at each start.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import UserError

# A Unix socket's address holds 108 bytes on Linux and 104 on macOS, the closing zero included.
SOCKET_PATH_BYTES = 100
RUNTIME_PATH_BYTES = 50


def default_home() -> Path:
    """`$STATIONMASTER_HOME`, else `stationmaster` in the XDG state directory. Not created here."""
    named = os.environ.get("STATIONMASTER_HOME")
    if named:
        return Path(named).expanduser().absolute()
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "stationmaster"


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one home; `path` is absolute. Nothing is touched before `ensure`."""

    path: Path

    @classmethod
    def at(cls, path: Path | str | None) -> Home:
        """The home at `path`, or the default one for None. A home that does not exist yet is no error."""
        return cls(Path(path).expanduser().absolute() if path is not None else default_home())

    @property
    def database(self) -> Path:
        return self.path / "station.db"

    @property
    def lock(self) -> Path:
        return self.path / "station.lock"

    @property
    def log(self) -> Path:
        return self.path / "station.log"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def hubs(self) -> Path:
        return self.path / "hubs"

    @property
    def workspaces(self) -> Path:
        return self.path / "workspaces"

    @property
    def checks(self) -> Path:
        """Where snapshots lie while they are checked."""
        return self.path / "checks"

    @property
    def trajectories(self) -> Path:
        return self.path / "trajectories"

    def trajectory(self, task: str, attempt: int) -> Path:
        return self.trajectories / task / f"{attempt}.jsonl"

    def option(self) -> str:
        """What a command needs to find this home, as in ` --home /srv/home` with its leading blank; '' for the default home."""
        return "" if self.path == default_home() else f" --home {shlex.quote(str(self.path))}"

    def exists(self) -> bool:
        return self.database.exists()

    def ensure(self) -> None:
        """Make the folders and the token where missing. UserError when the folder is not ours to use."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            for folder in (self.hubs, self.workspaces, self.checks, self.trajectories):
                folder.mkdir(mode=0o700, exist_ok=True)
            self._ensure_token()
        except OSError as failed:
            raise UserError(
                f"cannot use {self.path} as a home: {failed.strerror or failed}", hint="name another with --home DIR"
            ) from failed

    def _ensure_token(self) -> None:
        if self.read_token() is not None:
            return
        fresh = self.path / f".token.{os.getpid()}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(secrets.token_hex(32) + "\n")
        fresh.replace(self.token)

    def read_token(self) -> str | None:
        """The bearer token of this home's API; None when there is none (no station ever ran here)."""
        try:
            return self.token.read_text().strip() or None
        except OSError:
            return None

    @property
    def socket_pointer(self) -> Path:
        """Names the socket's true place when this home's path is too long for a socket."""
        return self.path / "station.sock.path"

    def socket(self) -> Path:
        """Where a client finds the station's socket."""
        try:
            named = self.socket_pointer.read_text().strip()
        except OSError:
            named = ""
        return Path(named) if named else self.path / "station.sock"

    def place_socket(self) -> Path:
        """Where the station is to bind. Writes the pointer file when the home's own path is too long, removes it otherwise."""
        wanted = self.path / "station.sock"
        if len(os.fsencode(wanted)) <= SOCKET_PATH_BYTES:
            self.socket_pointer.unlink(missing_ok=True)
            return wanted
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        folder = Path(_runtime_folder()) / f"stationmaster-{os.getuid()}-{name}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise UserError(f"{folder} belongs to somebody else", hint="choose a shorter --home DIR")
        folder.chmod(0o700)
        placed = folder / "station.sock"
        self.socket_pointer.write_text(f"{placed}\n")
        return placed


def _runtime_folder() -> str:
    """The first that leaves room for a socket's path. TMPDIR can be as deep as the home itself."""
    usual = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir())
    return next((folder for folder in usual if 0 < len(os.fsencode(folder)) < RUNTIME_PATH_BYTES and Path(folder).is_dir()), "/tmp")  # noqa: S108
