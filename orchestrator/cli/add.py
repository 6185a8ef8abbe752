"""`add`: more work for a station that runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from orchestrator.cli.intake import id_of_title, known_ids, need_new_ids, need_sandbox, specs_of_drafts, specs_of_file, tell_of_changes
from orchestrator.cli.options import with_home, with_json, with_sandbox
from orchestrator.cli.output import one_line, print_json, say
from orchestrator.cli.reading import station
from orchestrator.home import Home
from orchestrator.task import Kind, TaskSpec

if TYPE_CHECKING:
    from workspaces.sandbox import SandboxKind


@click.command()
@click.argument("taskfile", required=False, type=click.Path(path_type=Path), metavar="[TASKFILE]")
@click.option("--title", metavar="T", help="One task: its title (default: the prompt's first line) …")
@click.option("--prompt", metavar="P", help="… and what the agent is asked to do.")
@click.option("--id", "name", metavar="ID", help="Its id (default: made from the title).")
@click.option("--kind", type=click.Choice(get_args(Kind)), help="What sort of work it is (default: coding).")
@click.option("--repo", type=click.Path(path_type=Path), metavar="DIR", help="The git repository, where the task file names none.")
@click.option("--check", "checks", multiple=True, metavar="CMD", help="A command that must pass; may be given again.")
@click.option("--after", multiple=True, metavar="ID", help="Only when this task has succeeded; may be given again.")
@click.option("--priority", type=int, metavar="N", help="Higher first (default: 0).")
@with_sandbox
@with_json
@with_home
def add(
    home: Home,
    as_json: bool,
    sandbox: SandboxKind,
    taskfile: Path | None,
    title: str | None,
    prompt: str | None,
    name: str | None,
    kind: Kind | None,
    repo: Path | None,
    checks: tuple[str, ...],
    after: tuple[str, ...],
    priority: int | None,
) -> None:
    """Queue a task file or one task at the station that runs: all or nothing.

    \b
    Example:  stationmaster add --title "Round half to even" --prompt "…" --repo . --check "pytest -q"
    """
    single = {
        "--title": title,
        "--prompt": prompt,
        "--id": name,
        "--kind": kind,
        "--priority": priority,
        "--check": checks,
        "--after": after,
    }
    given = [option for option, value in single.items() if value]
    if taskfile is not None and given:
        raise click.UsageError(f"{given[0]} describes one task, so it does not go with a task file")
    if taskfile is not None:
        specs = specs_of_file(taskfile, repo=repo, sandbox=sandbox, home=home)
    elif prompt:
        specs = _one(home, title or "", prompt, name, kind or "coding", checks, after, priority or 0, repo, sandbox)
    else:
        raise click.UsageError("give a TASKFILE, or --prompt")
    need_sandbox(sandbox)
    need_new_ids(home, specs)
    tell_of_changes(specs)
    added = station(home).add(specs)
    if as_json:
        print_json({"added": added})
    else:
        say(f"queued {', '.join(map(one_line, added))}")


def _one(
    home: Home,
    title: str,
    prompt: str,
    name: str | None,
    kind: Kind,
    checks: tuple[str, ...],
    after: tuple[str, ...],
    priority: int,
    repo: Path | None,
    sandbox: SandboxKind,
) -> list[TaskSpec]:
    from orchestrator.taskfile import draft_task

    heading = title or prompt.strip().partition("\n")[0]
    chosen = name or id_of_title(heading, known_ids(home))
    draft = draft_task(id=chosen, title=title, prompt=prompt, kind=kind, checks=checks, after=after, priority=priority)
    return specs_of_drafts([draft], repo=repo, sandbox=sandbox)
