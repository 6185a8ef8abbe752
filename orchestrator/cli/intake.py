"""From a task file or a command line to task specs that can be queued: all of it before anything is started."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.output import note, visible
from orchestrator.cli.reading import read
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.launch import StationOptions
from orchestrator.reader import open_reader
from orchestrator.task import TaskSpec

if TYPE_CHECKING:
    from orchestrator.taskfile import TaskDraft
    from workspaces.sandbox import SandboxKind

STATUS_S = 5.0


def specs_of_file(path: Path, *, repo: Path | None, sandbox: SandboxKind, home: Home) -> list[TaskSpec]:
    """The tasks of a file, with repositories and base commits resolved; they may come after tasks that the home has already.

    UserError for whatever is wrong with it.
    """
    from orchestrator.taskfile import parse_task_file

    return specs_of_drafts(parse_task_file(path, queued=known_ids(home)), repo=repo, sandbox=sandbox)


def specs_of_drafts(drafts: Sequence[TaskDraft], *, repo: Path | None, sandbox: SandboxKind) -> list[TaskSpec]:
    from orchestrator.taskfile import resolve_drafts

    return asyncio.run(resolve_drafts(drafts, repo=repo.expanduser().absolute() if repo else None, sandbox=sandbox))


def need_engine(home: Home, options: StationOptions) -> None:
    """UserError when neither these options nor an earlier start of the home name an engine: the tasks would wait for ever."""
    if options.endpoint is not None or (home.exists() and open_reader(home).settings().engine != "none"):
        return
    raise UserError(
        "no engine is named, so the tasks would wait for ever",
        hint="--endpoint http://HOST:8000/v1 uses a server, `--engine sim` a simulation that only knows its scripts",
    )


def need_sandbox(sandbox: SandboxKind) -> None:
    """UserError when the sandbox asked for does not work on this machine."""
    if sandbox == "none":
        return
    problem = sandbox_problem()
    if problem is not None:
        raise UserError(
            f"bubblewrap does not work here: {problem}",
            hint="`--sandbox none` runs the agents' commands without one, with all your rights: only for work you trust",
        )


def tell_of_changes(specs: Sequence[TaskSpec]) -> None:
    """A warning for each repository whose checkout has changes that no agent will see. Nothing when git does not tell soon."""
    bases = {spec.repo: spec.base_commit for spec in reversed(specs)}
    for repo in asyncio.run(_changed(list(bases))):
        note(f"warning: {visible(repo)} has uncommitted changes; agents work from the commit {bases[repo][:12]} and do not see them")


async def _changed(repos: Sequence[str]) -> list[str]:
    from workspaces.errors import WorkspaceError
    from workspaces.hub import user_git

    found: list[str] = []
    for repo in repos:
        with contextlib.suppress(WorkspaceError):
            told = await user_git(Path(repo)).attempt(
                "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty", timeout_s=STATUS_S
            )
            found += [repo] if told.exit_code == 0 and told.stdout.strip() else []
    return found


def sandbox_problem() -> str | None:
    """One line with the remedy; None when bubblewrap works here."""
    from workspaces.bubblewrap import bubblewrap_problem

    return asyncio.run(bubblewrap_problem())


def need_new_ids(home: Home, specs: Sequence[TaskSpec]) -> None:
    """UserError when the home has one of these ids already."""
    known = known_ids(home)
    twice = [spec.id for spec in specs if spec.id in known]
    if twice:
        more = f" (and {len(twice) - 1} more)" if len(twice) > 1 else ""
        raise UserError(
            f"task `{twice[0]}`{more} exists already in {home.path}; nothing was queued",
            hint=f"`stationmaster retry {twice[0]}` runs it again; a new task needs a new id, or another --home",
        )


def known_ids(home: Home) -> set[str]:
    return {row.id for row in read(home, lambda reader: reader.tasks())} if home.exists() else set()


def id_of_title(title: str, known: set[str]) -> str:
    """A task id made from a title, with a number behind it when it is taken."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "task"
    number, name = 1, slug
    while name in known:
        number += 1
        name = f"{slug}-{number}"
    return name
