"""`engine sim`: the simulated engine in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.lazy import Entry, LazyGroup, Section
from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import one_line, print_json, say
from orchestrator.home import Home


@click.group(cls=LazyGroup)
def engine() -> None:
    """Engines: for now the simulated one."""


engine.sections = (Section("Commands", (Entry("sim", "engine", "sim", "A simulated vLLM, for demos, tests and capacity planning"),)),)


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), metavar="P", help="Where to listen; 0 takes a free port.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS")
@click.option("--profile", metavar="NAME|FILE", help="How fast it is: the name of a preset, or a profile file.")
@click.option("--script", "script_dir", type=click.Path(path_type=Path), metavar="DIR", help="What it answers: a script for each task id.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[=VALUE]", help="Misbehave in this way; may be given again.")
@click.option("--list-faults", is_flag=True, help="Name the faults and end.")
@click.option("--seed", default=0, type=int, metavar="N", show_default=True, help="The same seed gives the same replies.")
@click.option("--parent-pipe", is_flag=True, hidden=True, help="End when standard input ends.")
@with_json
@with_home
def sim(
    home: Home,
    as_json: bool,
    port: int | None,
    host: str,
    profile: str | None,
    script_dir: Path | None,
    faults: tuple[str, ...],
    list_faults: bool,
    seed: int,
    parent_pipe: bool,
) -> None:
    """A simulated vLLM with the real one's HTTP surface and metrics, until Ctrl-C.

    It never solves anything: a task for which it has no script gets an honest answer that says so.

    \b
    Example:  stationmaster engine sim --port 8000
    """
    from orchestrator.serving.simulator import FAULTS, serve

    if list_faults:
        _list_faults(dict(FAULTS), as_json)
        return
    if port is None:
        raise click.UsageError("--port is missing")
    serve(host=host, port=port, profile=profile, script_dir=script_dir, faults=faults, seed=seed, parent_pipe=parent_pipe)


def _list_faults(faults: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json(faults)
        return
    cells = max(map(len, faults), default=0)
    for name, what in faults.items():
        say(f"{name.ljust(cells)}  {one_line(what)}")
