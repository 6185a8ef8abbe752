"""`demo`: the whole product on a throw-away repository."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from orchestrator.cli.dashboard import open_dashboard
from orchestrator.cli.demoplace import DemoPlace, demo_data, make_place, remove_place
from orchestrator.cli.intake import sandbox_problem, specs_of_drafts
from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import fail, note, on_terminal, one_line, paint, print_json, say, visible
from orchestrator.cli.reading import READ_S
from orchestrator.cli.result import RunResult, result_of
from orchestrator.cli.run import follow, hub_of, summary
from orchestrator.cli.watch import Watch
from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.launch import StationOptions, spawn_station, station_running, stop_station
from orchestrator.task import REVIEWABLE, STUCK, TaskSpec
from orchestrator.taskfile import TaskDraft, parse_task_file

# Its script gives up on purpose, so that a newcomer sees what a failure looks like.
MEANT_TO_FAIL = frozenset({"closing-run-clock-change"})


@click.command()
@click.option("--agents", default=32, type=click.IntRange(1, 256), metavar="N", show_default=True, help="How many are at work at once.")
@click.option("--tasks", "how_many", default=32, type=click.IntRange(1, 32), metavar="N", show_default=True, help="How many tasks.")
@click.option("--seed", default=0, type=int, metavar="N", show_default=True, help="Of the simulated engine.")
@click.option("--plain", is_flag=True, help="Lines instead of the dashboard.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the repository and the station's home here.")
@with_json
@with_home
def demo(home: Home, as_json: bool, agents: int, how_many: int, seed: int, plain: bool, keep: Path | None) -> int:
    """Watch 32 agents at work on a throw-away repository: coding, documents, accounting.

    The engine is a simulation that plays prepared replies; everything else is real: files are edited, tests run, ledgers
    balanced, and every diff can be reviewed and merged. One task fails on purpose. Without --keep nothing stays behind:
    the folders that --json names are gone then. The demo's station has a home of its own, so --home changes nothing.

    \b
    Example:  stationmaster demo --plain --keep /tmp/look-around
    """
    if click.get_current_context().get_parameter_source("home") is click.core.ParameterSource.COMMANDLINE:
        note(f"the demo has a home of its own; {visible(str(home.path))} is not used (--keep DIR says where the demo's is)")
    use_this_python()
    drafts = fair_share(parse_task_file(demo_data() / "tasks.toml"), how_many)
    with terminable():
        place = make_place(keep)
        try:
            return _run(place, drafts, agents=agents, seed=seed, as_json=as_json, plain=plain)
        finally:
            stop(place.home)
            if keep is None:
                remove_place(place)


def _run(place: DemoPlace, drafts: list[TaskDraft], *, agents: int, seed: int, as_json: bool, plain: bool) -> int:
    watch, specs = _start(place, drafts, agents=agents, seed=seed)
    dashboard = on_terminal() and sys.stdin.isatty() and not plain and not as_json
    shown = dashboard and open_dashboard(place.home, stays=False) == 0
    try:
        if shown:
            watch.poll()
            if not watch.done():
                note("the demo was left before its end; it has been stopped")
                return 1
        follow(watch, note if as_json else say, quiet=shown or (as_json and not plain))
    except StationDown as gone:
        return fail(str(gone), gone.hint if place.kept else "")
    result = result_of(watch, home=place.home.path, repo=place.repo, hub=hub_of(place.home, specs))
    _report(watch, result, place, as_json=as_json)
    return 0 if as_designed(watch, result, specs) else 1


def _start(place: DemoPlace, drafts: list[TaskDraft], *, agents: int, seed: int) -> tuple[Watch, list[TaskSpec]]:
    """The demo's station at work, and who watches it."""
    problem = sandbox_problem()
    if problem is not None:
        note(paint(f"warning: no sandbox: {one_line(problem)}. The demo's own commands run without one.", "yellow"))
    specs = specs_of_drafts(drafts, repo=place.repo, sandbox="none" if problem else "bubblewrap")
    scripts = str(demo_data() / "scripts")
    spawn_station(place.home, StationOptions(endpoint="sim", agents=agents, sim_script=scripts, sim_profile="demo", sim_seed=seed))
    client = StationClient(place.home, patience_s=READ_S)
    watch = Watch(client, [spec.id for spec in specs], client.snapshot())
    client.add(specs)
    return watch, specs


def _report(watch: Watch, result: RunResult, place: DemoPlace, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    for line in summary(watch, result, on_purpose=MEANT_TO_FAIL):
        say(line)
    were = "agent was" if result.max_parallel == 1 else "agents were"
    say(f"{result.max_parallel} {were} at work at once; the engine is a simulation, the diffs and checks are real")
    if not place.kept:
        say("nothing is kept; `stationmaster demo --keep DIR` leaves repository and diffs to look at")
        return
    home = f"--home {shlex.quote(str(place.home.path))}"
    first = next((row.id for row in watch.rows.values() if row.state in REVIEWABLE), "TASK")
    say(f"\nkept in {visible(str(place.folder))}. Next:")
    for command in (
        f"review {home}",
        f"diff {first} {home}",
        f"up {home}",
        f"approve {first} {home}",
        f"merge {first} {home}",
        f"down {home}",
    ):
        say(f"    stationmaster {command}")


def as_designed(watch: Watch, result: RunResult, specs: list[TaskSpec]) -> bool:
    """All verified but those that are meant to fail."""
    meant = {spec.id for spec in specs} & MEANT_TO_FAIL
    failed = {task for task in watch.tasks if watch.rows[task].state in STUCK}
    return failed == meant and result.verified == len(specs) - len(meant)


def fair_share(drafts: list[TaskDraft], wanted: int) -> list[TaskDraft]:
    """`wanted` of the tasks, each kind in its share, in the order of the file."""
    of_kind: dict[str, list[TaskDraft]] = {}
    for draft in drafts:
        of_kind.setdefault(draft.form.kind, []).append(draft)
    ranked = sorted(((i + 0.5) / len(mine), draft.form.id) for mine in of_kind.values() for i, draft in enumerate(mine))
    chosen = {name for _, name in ranked[:wanted]}
    return [draft for draft in drafts if draft.form.id in chosen]


def use_this_python() -> None:
    """The demo's checks call `python3`: where there is none, the one that runs us serves."""
    if shutil.which("python3") is None:
        os.environ["PATH"] = os.pathsep.join(filter(None, [str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


@contextmanager
def terminable() -> Generator[None]:
    """SIGTERM and SIGHUP end the block like Ctrl-C does: with everything cleaned up."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop(home: Home) -> None:
    """Stop the demo's station, whatever state it is in."""
    # A second Ctrl-C must not leave a station behind.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        stop_station(home)
    except UserError:
        # Nobody needs what a demo's station has not finished.
        _kill(home)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kill(home: Home) -> None:
    pid = station_running(home)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
