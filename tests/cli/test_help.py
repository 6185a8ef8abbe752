"""Every command is in the group's help, has an example, and takes `--home`."""

from __future__ import annotations

import click
import pytest

from orchestrator.cli.lazy import LazyGroup
from orchestrator.cli.main import cli as group

from .conftest import Cli

WITHOUT_JSON = {"tui", "engine sim"}


def commands(of: LazyGroup, before: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in of.list_commands(click.Context(of)):
        command = of.get_command(click.Context(of), name)
        assert command is not None
        if isinstance(command, LazyGroup):
            found |= commands(command, f"{before}{name} ")
        else:
            found[f"{before}{name}"] = command
    return found


ALL = commands(group)


@pytest.mark.parametrize("name", ALL)
def test_each_command_shows_an_example_of_itself(name: str) -> None:
    help_text = ALL[name].get_help(click.Context(ALL[name], info_name=name))
    assert "Example:" in help_text
    assert f"stationmaster {name}" in help_text


@pytest.mark.parametrize("name", ALL)
def test_each_command_takes_home_and_prints_json(name: str) -> None:
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert "--home" in options
    assert name in WITHOUT_JSON or "--json" in options


def test_the_groups_help_lists_every_command_under_its_heading(cli: Cli) -> None:
    text = cli("--help").stdout
    for heading in ("Work:", "Review:", "Station:", "Engine:"):
        assert heading in text
    for name in ALL:
        assert f"  {name.split()[0]} " in text


def test_no_command_at_all_shows_the_help_and_is_a_usage_error(cli: Cli) -> None:
    done = cli(home=False)
    assert done.returncode == 2
    assert "Usage:" in done.stderr


def test_version_is_one_line(cli: Cli) -> None:
    done = cli("--version", home=False)
    assert done.returncode == 0
    assert done.stdout.startswith("stationmaster ")
    assert done.stdout.count("\n") == 1
