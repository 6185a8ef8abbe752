"""`run`: a task file, from nothing to work in progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.dashboard import open_dashboard, say_how_to_come_back
from orchestrator.cli.intake import need_engine, need_new_ids, need_sandbox, specs_of_file, tell_of_changes
from orchestrator.cli.options import station_options, with_engine, with_home, with_json, with_sandbox
from orchestrator.cli.output import fail, note, on_terminal, one_line, plural, print_json, say
from orchestrator.cli.plain import LineOutput
from orchestrator.cli.reading import READ_S
from orchestrator.cli.result import RunResult, result_of
from orchestrator.cli.station import start
from orchestrator.cli.watch import Watch
from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.task import BY_A_PERSON, VERIFIED, TaskSpec

if TYPE_CHECKING:
    from workspaces.sandbox import SandboxKind


@click.command()
@click.argument("taskfile", type=click.Path(path_type=Path))
@click.option("--repo", type=click.Path(path_type=Path), metavar="DIR", help="The git repository, where the task file names none.")
@with_engine
@with_sandbox
@click.option("--plain", is_flag=True, help="Lines instead of the dashboard; without --wait it returns at once.")
@click.option("--wait", is_flag=True, help="Stay until all of these tasks have ended; exits 1 when one failed.")
@with_json
@with_home
def run(
    home: Home,
    as_json: bool,
    taskfile: Path,
    repo: Path | None,
    endpoint: str | None,
    engine: str | None,
    model: str | None,
    api_key_env: str | None,
    agents: int | None,
    sandbox: SandboxKind,
    plain: bool,
    wait: bool,
) -> int:
    """Start a station if none runs, queue the tasks of a file, and open the dashboard.

    The whole file is checked first: when anything in it is wrong, nothing is queued and nothing started. Your checkout
    is not touched before you merge.

    \b
    Example:  stationmaster run tasks.toml --repo . --endpoint http://127.0.0.1:8000/v1
    """
    options = station_options(endpoint=endpoint, engine=engine, model=model, api_key_env=api_key_env, agents=agents)
    specs = specs_of_file(taskfile, repo=repo, sandbox=sandbox, home=home)
    if not specs:
        raise UserError(f"{taskfile} has no tasks")
    need_engine(home, options)
    need_sandbox(sandbox)
    need_new_ids(home, specs)
    tell_of_changes(specs)
    start(home, options)
    client = StationClient(home, patience_s=READ_S)
    before = client.snapshot()
    added = client.add(specs)
    if wait:
        watch = Watch(client, added, before)
        return _wait(watch, home, specs, as_json=as_json, quiet=as_json and not plain)
    return _leave(home, added, as_json=as_json, plain=plain)


def _leave(home: Home, added: list[str], *, as_json: bool, plain: bool) -> int:
    """The dashboard, or a word and good-bye."""
    if as_json:
        print_json({"added": added, "home": str(home.path)})
        return 0
    if plain or not on_terminal():
        say(f"queued {plural(len(added), 'task')} at the station of {home.path}")
        say(
            f"`stationmaster list{home.option()}` shows where they are, `events --follow` and `tui` what happens; with --wait `run` stays to the end"
        )
        return 0
    return open_dashboard(home)


def _wait(watch: Watch, home: Home, specs: list[TaskSpec], *, as_json: bool, quiet: bool) -> int:
    try:
        follow(watch, note if as_json else say, quiet=quiet)
    except StationDown as gone:
        return fail(str(gone), gone.hint)
    except KeyboardInterrupt:
        say_how_to_come_back(home)
        raise
    result = result_of(watch, home=home.path, repo=Path(specs[0].repo), hub=hub_of(home, specs))
    if as_json:
        print_json(result)
    else:
        for line in summary(watch, result):
            say(line)
    return 1 if result.failed else 0


def follow(watch: Watch, tell: Callable[[str], None], *, quiet: bool = False) -> None:
    """Line output until every task has ended. StationDown when the station goes away before."""
    lines = LineOutput(watch, tell)
    try:
        watch.wait((lambda _events: None) if quiet else lines.tell)
    except StationDown as gone:
        raise StationDown(
            f"the station stopped before all tasks had ended: {gone}",
            hint=f"`stationmaster up{watch.client.home.option()}` goes on where it stopped; no work is lost",
        ) from gone
    if not quiet:
        tell(lines.totals_line())


def hub_of(home: Home, specs: list[TaskSpec]) -> Path | None:
    """The bare repository that holds the bases and snapshots of the tasks' repository; None when it was never made."""
    from workspaces.hub import hub_path

    hub = hub_path(Path(specs[0].repo), hubs=home.hubs)
    return hub if hub.is_dir() else None


def summary(watch: Watch, result: RunResult, *, on_purpose: frozenset[str] = frozenset()) -> list[str]:
    """What became of the tasks, in words. `on_purpose`: tasks that are meant to fail."""
    speed = "" if result.tokens_per_s is None else f", {result.tokens_per_s:,.0f} tokens/s"
    took = "" if result.wall_s is None else f" in {result.wall_s:.0f} s"
    stopped = sum(watch.rows[task].state in BY_A_PERSON for task in watch.tasks)
    ended = f"{result.failed - stopped} failed" + (f", {stopped} cancelled or rejected" if stopped else "")
    lines = ["", f"{result.verified} of {plural(result.tasks, 'task')} verified, {ended}{took}{speed}"]
    for task in watch.tasks:
        row = watch.rows[task]
        if task in result.not_run:
            lines.append(f"    {one_line(task)}: never started, {one_line(result.not_run[task])} did not succeed")
        elif row.state not in VERIFIED:
            meant = ", on purpose" if task in on_purpose and row.state == "failed" else ""
            lines.append(f"    {one_line(task)}: {row.state}{meant}" + (f": {one_line(row.failure.message)}" if row.failure else ""))
    lost = result.unattributed_tokens or 0
    if lost > 0:
        lines.append(f"    {lost:,} tokens of the engine reached no agent (replies that were cut off)")
    elif lost < 0:
        lines.append(f"    the agents received {-lost:,} tokens more than the engine counted")
    return lines
