"""`doctor`: what this machine has and lacks, with the remedy beside it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from typing import Literal

import click
import msgspec

from agents.errors import ModelRejected, ModelUnavailable
from agents.model import ModelInfo, OpenAIModel
from orchestrator.cli.options import key_in, with_home, with_json
from orchestrator.cli.output import one_line, paint, print_json, say, visible
from orchestrator.client import StationClient
from orchestrator.config import endpoint_url
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.launch import station_running

Verdict = Literal["ok", "warning", "failed"]

OLDEST_PYTHON = (3, 11)
ANSWER_S = 15.0
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
    for finding in _examine(home, endpoint, key_in(api_key_env)):
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
    from workspaces.git import git_problem

    problem = asyncio.run(git_problem())
    if problem is None:
        return Finding(check="git", verdict="ok", found="git works and is new enough")
    return Finding(check="git", verdict="failed", found="git is missing, broken or too old", remedy=problem)


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
    """Asks as the station would."""
    remedy = "start the server, or correct the URL"
    try:
        found = asyncio.run(_model_at(endpoint_url(url), key))
    except UserError as wrong:
        return Finding(check="endpoint", verdict="failed", found=str(wrong), remedy=wrong.hint)
    except ModelRejected as refused:
        hint = "set --api-key-env" if "HTTP 401" in str(refused) or "HTTP 403" in str(refused) else remedy
        return Finding(check="endpoint", verdict="failed", found=f"{url} refuses us: {refused}", remedy=hint)
    except (ModelUnavailable, TimeoutError) as silent:
        return Finding(check="endpoint", verdict="failed", found=f"{url} does not answer: {str(silent) or 'too slow'}", remedy=remedy)
    window = "" if found.max_model_len is None else f", {found.max_model_len:,} tokens long"
    return Finding(check="endpoint", verdict="ok", found=f"{url} serves {found.model}{window}")


async def _model_at(url: str, key: str | None) -> ModelInfo:
    async with asyncio.timeout(ANSWER_S), OpenAIModel(url, api_key=key) as model:
        return await model.info()
