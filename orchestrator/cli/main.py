"""`stationmaster`: the table of commands, and how every error ends."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, cast

import click

from orchestrator.cli.lazy import Entry, LazyGroup, Section
from orchestrator.errors import UserError
from orchestrator.version import version
from workspaces.errors import WorkspaceError

SECTIONS = (
    Section(
        "Work",
        (
            Entry("demo", "demo", "demo", "Watch 32 agents at work on a throw-away repository"),
            Entry("run", "run", "run", "Start a station if need be, queue a task file, watch"),
            Entry("add", "add", "add", "Queue a task file or one task"),
            Entry("list", "work", "list_tasks", "The tasks and where they are"),
            Entry("show", "work", "show", "One task: prompt, attempts, checks"),
            Entry("events", "history", "events", "What happened, one fact a line"),
            Entry("log", "history", "log", "What the agent and its model said"),
            Entry("cancel", "work", "cancel", "Stop a task"),
            Entry("retry", "work", "retry", "Queue an ended task again"),
            Entry("say", "work", "say", "A word to the agent at work"),
        ),
    ),
    Section(
        "Review",
        (
            Entry("review", "review", "review", "The diffs that wait for a person"),
            Entry("diff", "review", "diff", "What a task changed"),
            Entry("approve", "review", "approve", "Say that a diff is good"),
            Entry("reject", "review", "reject", "Refuse a diff; with a comment it is tried again"),
            Entry("merge", "merge", "merge", "Land approved diffs on their branch"),
            Entry("workspace", "workspace", "workspace", "Where the agents' files are"),
        ),
    ),
    Section(
        "Station",
        (
            Entry("up", "station", "up", "Start the station"),
            Entry("down", "station", "down", "Stop the station"),
            Entry("status", "station", "status", "Whether it runs, and what it does"),
            Entry("tui", "station", "tui", "Open the dashboard"),
            Entry("doctor", "doctor", "doctor", "Check this machine, with remedies"),
        ),
    ),
    Section(
        "Engine",
        (
            Entry("engine", "engine", "engine", "A simulated engine"),
            Entry("bench", "bench", "bench", "Measure an endpoint under load"),
        ),
    ),
)


def print_version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"stationmaster {version()}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Every command takes --home DIR, and --json where it prints data. `stationmaster COMMAND --help` has an example of each.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version, help="Print the version.")
def cli() -> None:
    """Dozens of agents at work on a task queue, each in a git workspace of its own, against one model endpoint.

    \b
    Begin with:  stationmaster demo
    """


cli.sections = SECTIONS


def main() -> None:
    """The console script. Exits 0 done, 1 failed, 2 usage, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape, not a traceback.
        cast(Any, stream).reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    try:
        code = cli.main(prog_name="stationmaster", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.NoArgsIsHelpError as bare:
        click.echo(bare.format_message(), err=True)
        return 2
    except click.UsageError as wrong:
        path = wrong.ctx.command_path if wrong.ctx else "stationmaster"
        return _fail(wrong.format_message(), f"`{path} --help` shows the usage", 2)
    except click.ClickException as wrong:
        return _fail(wrong.format_message(), "", wrong.exit_code)
    except (UserError, WorkspaceError) as wrong:
        return _fail(str(wrong), wrong.hint, 2)
    except BrokenPipeError:
        return _reader_gone()
    except OSError as wrong:
        return _fail(str(wrong), "", 1)
    except Exception as bug:
        return _bug(bug)
    return code if isinstance(code, int) else 0


def _fail(message: str, hint: str, code: int) -> int:
    from orchestrator.cli.output import fail

    return fail(message, hint, code)


def _reader_gone() -> int:
    # Whoever read our output (`| head`) has gone: the interpreter's own flush at exit must not complain about it.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return 1


def _bug(bug: Exception) -> int:
    if os.environ.get("STATIONMASTER_TRACEBACK"):
        traceback.print_exception(bug, file=sys.stderr)
    hint = "this is a fault of Stationmaster; STATIONMASTER_TRACEBACK=1 shows where, for a report"
    return _fail(f"unexpected {type(bug).__name__}: {bug}", hint, 1)
