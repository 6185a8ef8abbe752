"""The options that many commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from orchestrator.config import endpoint_url
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.launch import StationOptions

F = TypeVar("F", bound=Callable[..., Any])


def _home(_ctx: click.Context, _param: click.Parameter, given: str | None) -> Home:
    try:
        return Home.at(given)
    except RuntimeError as unknown_user:
        raise click.BadParameter(str(unknown_user)) from unknown_user


def with_home(command: F) -> F:
    """`--home DIR`, as `home: Home`. The folder need not exist."""
    return click.option(
        "--home",
        metavar="DIR",
        callback=_home,
        help="The station's state directory (default: $STATIONMASTER_HOME, else the XDG state directory).",
    )(command)


def with_json(command: F) -> F:
    """`--json`, as `as_json: bool`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(command)


def with_engine(command: F) -> F:
    """`--endpoint`, `--engine sim`, `--model`, `--api-key-env` and `--agents`: see `station_options`."""
    for option in (
        click.option("--agents", type=click.IntRange(1, 4096), metavar="N", help="How many tasks are at work at once."),
        click.option("--api-key-env", metavar="VAR", help="The environment variable that holds the endpoint's key."),
        click.option("--model", metavar="NAME", help="The model's name at the endpoint (default: the first that it lists)."),
        click.option("--engine", type=click.Choice(["sim"]), help="Use the simulated engine, as the station's child."),
        click.option("--endpoint", metavar="URL", help="An OpenAI-compatible server, as in http://127.0.0.1:8000/v1."),
    ):
        command = option(command)
    return command


def with_sandbox(command: F) -> F:
    """`--sandbox`, as `sandbox: SandboxKind`."""
    return click.option(
        "--sandbox",
        type=click.Choice(["bubblewrap", "none"]),
        default="bubblewrap",
        show_default=True,
        help="Where the agents' commands and the checks run; `none`: with all your rights.",
    )(command)


def station_options(
    *, endpoint: str | None, engine: str | None, model: str | None, api_key_env: str | None, agents: int | None
) -> StationOptions:
    """What the options of `with_engine` say. Fields are None where nothing was said: the home remembers an earlier start.

    UserError when the endpoint cannot be meant, or the variable that should hold its key does not.
    """
    if endpoint is not None and engine is not None:
        raise click.UsageError("--endpoint and --engine exclude each other")
    if endpoint is not None:
        endpoint = endpoint_url(endpoint)
    key_in(api_key_env)
    return StationOptions(endpoint=engine or endpoint, model=model, api_key_env=api_key_env, agents=agents)


def key_in(variable: str | None) -> str | None:
    """The endpoint's key; None when no variable is named. UserError when it is empty, or no HTTP header can hold what is in it."""
    if not variable:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UserError(f"the environment variable {variable} holds no key", hint=f"export {variable}=…")
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"what the environment variable {variable} holds is no key", hint="a key has no line breaks and no accents")
    return key
