"""The demo's throw-away folder: a git repository made from the shipped files, and a station's home beside it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orchestrator
from orchestrator.cli.output import note
from orchestrator.errors import UserError
from orchestrator.home import Home

# The same files, the same author and the same moment give the same base commit everywhere.
COMMIT_AT = "2026-01-05T09:00:00+00:00"
AUTHOR = "Stationmaster demo"
EMAIL = "demo@example.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlace:
    """`kept` tells whether the folder outlives the demo."""

    folder: Path
    repo: Path
    home: Home
    kept: bool


def demo_data() -> Path:
    """The folder with `tasks.toml`, `scripts/` and `repo/`: in the installed package, or in a source checkout."""
    package = Path(orchestrator.__file__).parent
    for folder in (package / "data" / "demo", package.parent / "examples" / "demo"):
        if (folder / "tasks.toml").is_file():
            return folder
    raise UserError("this installation lacks the demo's files", hint="install Stationmaster again")


def make_place(keep: Path | None) -> DemoPlace:
    """Make the folder and the repository. UserError when `keep` is there already and not empty."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="stationmaster-demo-")).resolve()
    else:
        folder = keep.expanduser().absolute()
        _claim(folder)
    try:
        return DemoPlace(folder=folder, repo=make_repository(folder / "repo"), home=Home(folder / "home"), kept=keep is not None)
    except BaseException:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError) as wrong:
        raise UserError(f"{folder} is not a folder", hint="name a new folder with --keep") from wrong
    except OSError as wrong:
        raise UserError(f"cannot make {folder}: {wrong.strerror}", hint="name another folder with --keep") from wrong
    if taken:
        raise UserError(f"{folder} is there already and not empty", hint="name a new folder with --keep; a demo never writes over anything")


def make_repository(path: Path) -> Path:
    """A git repository of the shipped files with one commit, the same id everywhere."""
    shutil.copytree(demo_data() / "repo", path, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), copy_function=shutil.copyfile)
    _git(path, "init", "--quiet", "--template=", "--initial-branch=main")
    _git(path, "add", "--all", "--force")
    _git(path, "commit", "--quiet", "--no-gpg-sign", "--message=The demo's books, papers and code")
    return path


def _git(path: Path, *args: str) -> None:
    """Git without the user's configuration, so that it can neither change the commit nor run a hook."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": AUTHOR, f"GIT_{who}_EMAIL": EMAIL, f"GIT_{who}_DATE": COMMIT_AT}
    settings = ("-c", "core.autocrlf=false", "-c", "core.fileMode=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
    try:
        done = subprocess.run(
            ["git", "-C", str(path), *settings, *args],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError as missing:
        raise UserError("git is not installed", hint="install git; `stationmaster doctor` checks the rest") from missing
    if done.returncode:
        raise UserError(f"git {args[0]} failed: {done.stderr.strip()}", hint="`stationmaster doctor` checks this machine")


def remove_place(place: DemoPlace) -> None:
    """Remove a folder that `make_place` made for this demo; says so when something resists."""
    shutil.rmtree(place.folder, onerror=_make_writable)
    if place.folder.exists():
        note(f"could not remove all of {place.folder}")


def _make_writable(retry: Callable[[str], object], path: str, _error: object) -> None:
    # A command may have left a folder without write permission.
    try:
        for one in (Path(path).parent, Path(path)):
            if not one.is_symlink():
                one.chmod(one.stat().st_mode | stat.S_IRWXU)
        retry(path)
    except OSError:
        return
