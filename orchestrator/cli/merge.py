"""`merge`: land approved diffs, one after the other."""

from __future__ import annotations

import click

from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import note, one_line, print_json, say
from orchestrator.cli.reading import station
from orchestrator.home import Home
from orchestrator.task import MERGEABLE
from orchestrator.views import MergeView


@click.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@with_json
@with_home
def merge(home: Home, as_json: bool, tasks: tuple[str, ...]) -> int:
    """Land approved diffs on their branches, one after the other; without TASK all that are approved.

    Waits until each has landed or was refused. A branch is never moved under a checkout with changes, and conflicts are
    reported, not left behind. Exits 1 when one was refused.

    \b
    Example:  stationmaster merge fix-rounding
    """
    client = station(home)
    wanted = list(tasks) or [row.id for row in client.tasks() if row.approved and row.state in MERGEABLE]
    if not wanted and not as_json:
        say(f"nothing is approved; see `stationmaster review{home.option()}`")
        return 0
    views: list[MergeView] = []
    for task in wanted:
        view = client.merge(task)
        views.append(view)
        if not as_json:
            _tell(view, home)
    if as_json:
        print_json(views)
    return 0 if all(view.state == "merged" for view in views) else 1


def _tell(view: MergeView, home: Home) -> None:
    name = one_line(view.task)
    if view.state == "merged":
        say(f"{name}: merged into {one_line(view.target or '?')} as {(view.commit or '')[:12]}")
        return
    note(f"error: {name}: not merged: {one_line(view.message)}")
    for path in view.conflicts:
        note(f"    conflict in {one_line(path)}")
    if view.conflicts:
        note(
            f"\nhint: `stationmaster retry {name}{home.option()}` does it again on the present state of {one_line(view.target or 'the branch')}"
        )
