"""`events` and `log`: what happened, and what was said."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
import msgspec

from agents.messages import Assistant, Message, System, ToolResult, User
from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import clip, on_terminal, one_line, paint, print_json, say, visible
from orchestrator.cli.reading import POLL_S, need_home, read, station
from orchestrator.cli.wording import event_line
from orchestrator.errors import StationDown, UserError
from orchestrator.events import Event, StationStopped
from orchestrator.home import Home
from orchestrator.launch import station_running
from orchestrator.reader import open_reader
from orchestrator.views import LogDocument

# A tool's result may be a whole file; `--step` and `--json` show all of it.
RESULT_LINES = 12


@click.command()
@click.argument("task", required=False)
@click.option("--follow", is_flag=True, help="Go on as things happen; Ctrl-C ends it.")
@click.option("--after", default=0, type=click.IntRange(min=0), metavar="SEQ", help="Only what came after this sequence number.")
@with_json
@with_home
def events(home: Home, as_json: bool, task: str | None, follow: bool, after: int) -> int:
    """What happened, one fact a line, the station's own facts among them. --follow ends when the station is stopped.

    \b
    Example:  stationmaster events fix-rounding --follow
    """
    if follow and as_json:
        raise click.UsageError("--follow never ends, so it cannot give one JSON document; leave one of the two out")
    if task is not None:
        named = task
        read(home, lambda reader: reader.task(named))  # refuses a task that is not there
    if follow:
        need_home(home)
        return _follow(home, task, after)
    told = read(home, lambda reader: _stored(reader.events(after, task=task)))
    if as_json:
        print_json(told)
        return 0
    for event in told:
        say(event_line(event))
    return 0


def _follow(home: Home, task: str | None, after: int) -> int:
    """Lines as things happen, until the station is stopped. StationDown when there is none, or it was killed."""
    client = station(home)
    client.status()
    begun = open_reader(home).last_seq()
    while True:
        try:
            for event in client.events(after, task=task, follow=True):
                after = event.seq
                say(event_line(event))
        except StationDown:
            if any(isinstance(event.fact, StationStopped) for event in open_reader(home).events(begun)):
                return 0
            if station_running(home) is None:
                raise
        time.sleep(POLL_S)  # it was too slow for us, or we for it: go on after the last line


def _stored(told: Iterator[Event]) -> list[Event]:
    return list(told)


@click.command()
@click.argument("task")
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Only this step, with all of its output.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="An earlier attempt (default: the last).")
@with_json
@with_home
def log(home: Home, as_json: bool, task: str, step: int | None, attempt: int | None) -> None:
    """What the agent and its model said, step by step.

    \b
    Example:  stationmaster log fix-rounding --step 3
    """
    document = read(home, lambda reader: reader.log(task, attempt=attempt, step=step))
    if as_json:
        print_json(document)
        return
    if not document.messages:
        raise UserError(
            f"{task} has nothing to show for {'step ' + str(step) if step else 'this attempt'}", hint=f"see `stationmaster show {task}`"
        )
    for line in _log_lines(document, step):
        say(line)


def _log_lines(document: LogDocument, only: int | None) -> Iterator[str]:
    decoder = msgspec.json.Decoder(Message)
    step = (only or 1) - 1
    yield paint(f"{one_line(document.task)}, attempt {document.attempt}", "bold")
    for raw in document.messages:
        message = decoder.decode(raw)
        if isinstance(message, Assistant):
            step += 1
            tokens = f", {message.usage.output_tokens} tokens" if message.usage else ""
            yield from ("", paint(f"── step {step}{tokens}", "cyan"))
        yield from _message_lines(message, whole=only is not None)


def _message_lines(message: Message, *, whole: bool) -> Iterator[str]:
    match message:
        case System():
            yield from _block("system", message.text, None if whole else 4)
        case User():
            yield from _block("user", message.text, None)
        case Assistant():
            yield from _block("thinking", message.reasoning, None)
            yield from _block("says", message.text, None)
            for call in message.tool_calls:
                arguments = one_line(call.arguments)
                yield f"calls {one_line(call.name)} {arguments if whole or not on_terminal() else clip(arguments, 200)}"
        case ToolResult():
            mark = paint("✓", "green") if message.ok else paint("✗", "red")
            yield from _block(f"{mark} {one_line(message.name)}", message.text, None if whole else RESULT_LINES)


def _block(title: str, text: str, limit: int | None) -> Iterator[str]:
    """The text under its title, indented; `limit` lines at most (the head, with a word on the rest)."""
    if not text.strip():
        return
    lines = visible(text).rstrip().split("\n")
    yield f"{title}:"
    yield from (f"    {line}" for line in lines[:limit])
    if limit is not None and len(lines) > limit:
        yield f"    … {len(lines) - limit} more lines (--step shows them)"
