"""`doctor`: what this machine has and lacks, with the remedy beside it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Literal

import click
import msgspec

from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import one_line, paint, print_json, say, visible
from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.launch import station_running

Verdict = Literal["ok", "warning", "failed"]

OLDEST_PYTHON = (3, 11)
# `git merge-tree --write-tree` came with 2.38.
OLDEST_GIT = (2, 38)
SPARE_DISK_BYTES = 2 * 1024**3


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`remedy` is '' when nothing is wrong. Only what is `failed` keeps Stationmaster from working."""

    check: str
    verdict: Verdict
    found: str
    remedy: str = ""


@click.command()
@click.option("--endpoint", metavar="URL", help="Also ask this endpoint whether it answers.")
@click.option("--api-key-env", metavar="VAR", help="The environment variable that holds the endpoint's key.")
@with_json
@with_home
def doctor(home: Home, as_json: bool, endpoint: str | None, api_key_env: str | None) -> int:
    """Check this machine, with a remedy for each thing that is wrong. Exits 1 when something necessary is missing.

    \b
    Example:  stationmaster doctor --endpoint http://127.0.0.1:8000/v1
    """
    findings: list[Finding] = []
    for finding in _examine(home, endpoint, os.environ.get(api_key_env) if api_key_env else None):
        findings.append(finding)
        if not as_json:
            _tell(finding)
    if as_json:
        print_json(findings)
    return 1 if any(finding.verdict == "failed" for finding in findings) else 0


def _tell(finding: Finding) -> None:
    mark = {"ok": paint("ok     ", "green"), "warning": paint("warning", "yellow"), "failed": paint("failed ", "red")}[finding.verdict]
    say(f"{mark}  {finding.check.ljust(10)}  {one_line(finding.found)}")
    if finding.remedy:
        say(f"{' ' * 21}{visible(finding.remedy)}")


def _examine(home: Home, endpoint: str | None, key: str | None) -> Iterator[Finding]:
    yield _python()
    yield _git()
    yield _sandbox()
    yield _home(home)
    yield _disk(home)
    yield _terminal()
    yield from _station(home)
    if endpoint is not None:
        yield _endpoint(endpoint, key)


def _python() -> Finding:
    found = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding(check="python", verdict="failed", found=found, remedy="Python 3.11 or newer is needed")
    if shutil.which("python3") is None:
        return Finding(
            check="python", verdict="warning", found=f"{found}; no `python3` on PATH", remedy="checks that call `python3` will fail"
        )
    return Finding(check="python", verdict="ok", found=found)


def _git() -> Finding:
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as missing:
        return Finding(check="git", verdict="failed", found=f"git does not run: {missing}", remedy="install git 2.38 or newer")
    numbers = tuple(int(part) for part in said.split()[2].split(".")[:2] if part.isdigit()) if len(said.split()) > 2 else ()
    if numbers < OLDEST_GIT:
        return Finding(check="git", verdict="failed", found=said, remedy="merges need git 2.38 or newer")
    return Finding(check="git", verdict="ok", found=said)


def _sandbox() -> Finding:
    from orchestrator.cli.intake import sandbox_problem

    problem = sandbox_problem()
    if problem is None:
        return Finding(check="sandbox", verdict="ok", found="bubblewrap works")
    return Finding(
        check="sandbox",
        verdict="warning",
        found=problem,
        remedy="until then `run` needs --sandbox none, which gives agents all your rights",
    )


def _home(home: Home) -> Finding:
    nearest = next(folder for folder in (home.path, *home.path.parents) if folder.exists())
    if not nearest.is_dir():
        return Finding(check="home", verdict="failed", found=f"{nearest} is not a folder", remedy="name another with --home DIR")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding(check="home", verdict="failed", found=f"{nearest} is not writable", remedy="name another with --home DIR")
    state = "is there" if home.exists() else "will be made at the first start"
    return Finding(check="home", verdict="ok", found=f"{home.path} {state}")


def _disk(home: Home) -> Finding:
    nearest = next(folder for folder in (home.path, *home.path.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    found = f"{free / 1024**3:.1f} GiB free for {home.path}"
    if free < SPARE_DISK_BYTES:
        return Finding(
            check="disk",
            verdict="warning",
            found=found,
            remedy="each workspace is a checkout of its own: make room, or use --home on another disk",
        )
    return Finding(check="disk", verdict="ok", found=found)


def _terminal() -> Finding:
    encoding = sys.stdout.encoding or "unknown"
    found = f"{os.environ.get('TERM') or 'no TERM'}, {encoding}"
    if encoding.lower().replace("-", "") != "utf8":
        return Finding(check="terminal", verdict="warning", found=found, remedy="the dashboard draws with UTF-8: set LANG=C.UTF-8")
    if os.environ.get("TERM") in (None, "", "dumb"):
        return Finding(check="terminal", verdict="warning", found=found, remedy="without a capable terminal use --plain")
    return Finding(check="terminal", verdict="ok", found=found)


def _station(home: Home) -> Iterator[Finding]:
    pid = station_running(home)
    if pid is None:
        stale = home.socket().exists()
        left = f"; its socket {home.socket()} is left from one that was killed" if stale else ""
        yield Finding(
            check="station",
            verdict="ok",
            found=f"none runs{left}",
            remedy=f"`stationmaster up{home.option()}` starts one and replaces the socket" if stale else "",
        )
        return
    try:
        status = StationClient(home).status()
    except (StationDown, UserError) as silent:
        yield Finding(
            check="station",
            verdict="failed",
            found=f"pid {pid} does not answer: {silent}",
            remedy=f"look into {home.log}; `kill {pid}` ends it, no work is lost",
        )
        return
    yield Finding(check="station", verdict="ok", found=f"runs, pid {status.pid}, version {status.version}")
    if status.engine is not None:
        healthy = status.engine.healthy
        yield Finding(
            check="engine",
            verdict="ok" if healthy else "warning",
            found=f"{status.engine.url}: {status.engine.message}",
            remedy="" if healthy else "agents wait until it answers; no attempt is lost",
        )


def _endpoint(url: str, key: str | None) -> Finding:
    remedy = "start the server, or correct the URL; it should end in /v1"
    if not url.startswith(("http://", "https://")):
        return Finding(check="endpoint", verdict="failed", found=f"{url} is not an http:// or https:// URL", remedy=remedy)
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310 - checked above
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            models = msgspec.json.decode(answer.read(), type=_Models)
    except urllib.error.HTTPError as refused:
        hint = "set --api-key-env" if refused.code in (401, 403) else remedy
        return Finding(check="endpoint", verdict="failed", found=f"{url} answers {refused.code}", remedy=hint)
    except (TimeoutError, OSError) as silent:
        return Finding(
            check="endpoint", verdict="failed", found=f"{url} does not answer: {getattr(silent, 'reason', silent)}", remedy=remedy
        )
    except msgspec.MsgspecError:
        return Finding(
            check="endpoint", verdict="failed", found=f"{url}/models answers something that is not a list of models", remedy=remedy
        )
    names = ", ".join(model.id for model in models.data) or "no model"
    return Finding(
        check="endpoint", verdict="ok" if models.data else "failed", found=f"{url} serves {names}", remedy="" if models.data else remedy
    )


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]
