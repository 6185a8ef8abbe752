"""`list`, `show`, `cancel`, `retry` and `say`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from orchestrator.cli.options import with_home, with_json
from orchestrator.cli.output import age, columns, count, on_terminal, one_line, paint, plural, print_json, table, visible
from orchestrator.cli.output import say as say_line
from orchestrator.cli.reading import read, station
from orchestrator.home import Home
from orchestrator.task import ACTIVE, STATES, UNSUCCESSFUL, VERIFIED, FailureKind, State
from orchestrator.views import AttemptView, CheckOutput, Failure, TaskDetail, TaskRow

LIVE_LINES = 12
# The kind of failure that says no more than the state.
SAME_WORD: dict[State, tuple[FailureKind, ...]] = {"stuck": ("stuck",), "conflicted": ("conflict",)}


@click.command("list")
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, metavar="S", help="Only tasks in this state; may be given again."
)
@with_json
@with_home
def list_tasks(home: Home, as_json: bool, states: tuple[State, ...]) -> None:
    """The tasks and where they are.

    \b
    Example:  stationmaster list --state running
    """
    rows = read(home, lambda reader: reader.tasks())
    wanted = [row for row in rows if not states or row.state in states]
    if as_json:
        print_json(wanted)
        return
    if not wanted:
        say_line("no tasks" if not rows else f"none of {len(rows)} tasks is {' or '.join(states)}")
        return
    for line in table_of_tasks(wanted):
        say_line(line)


def table_of_tasks(rows: list[TaskRow]) -> list[str]:
    """A header and a line for each task, as wide as the terminal at most."""
    headers = ["TASK", "STATE", "KIND", "STEP", "TOKENS", "DIFF", "AGE", "TITLE"]
    cells = [
        [
            one_line(row.id),
            state_word(row),
            row.kind,
            "—" if row.step is None else str(row.step),
            count(row.output_tokens),
            diff_size(row),
            age(row.state_age_s),
            one_line(row.title) + (f" ({one_line(row.waiting_for)})" if row.waiting_for else ""),
        ]
        for row in rows
    ]
    lines = table(headers, cells, right=frozenset({3, 4, 5, 6}), room=columns())
    return [paint(lines[0], "bold"), *(paint(line, colour_of(row.state)) for line, row in zip(lines[1:], rows, strict=True))]


def state_word(row: TaskRow) -> str:
    """The state, with what a person wants to know at a glance: why it failed, that it is approved."""
    if row.failure is not None and row.state in UNSUCCESSFUL and row.failure.kind not in SAME_WORD.get(row.state, ()):
        return f"{row.state} ({row.failure.kind})"
    return f"{row.state}, approved" if row.approved and row.state == "in-review" else row.state


def diff_size(row: TaskRow) -> str:
    if row.insertions is None and row.deletions is None:
        return "—"
    return f"+{row.insertions or 0} -{row.deletions or 0}"


def colour_of(state: State) -> str:
    if state in UNSUCCESSFUL:
        return "red"
    if state in ACTIVE:
        return "cyan"
    return "green" if state in VERIFIED else "reset"


@click.command()
@click.argument("task")
@with_json
@with_home
def show(home: Home, as_json: bool, task: str) -> None:
    """One task: its prompt, its attempts, its checks with their output.

    \b
    Example:  stationmaster show fix-rounding
    """
    detail = read(home, lambda reader: reader.task(task))
    if as_json:
        print_json(detail)
        return
    for line in _detail_lines(detail):
        say_line(line)


def _detail_lines(detail: TaskDetail) -> Iterator[str]:
    row = detail.row
    yield paint(f"{one_line(row.id)}  {one_line(row.title)}", "bold")
    yield f"{row.kind}, {paint(state_word(row), colour_of(row.state))} for {age(row.state_age_s)}"
    if row.waiting_for:
        yield f"waits for {one_line(row.waiting_for)}"
    if row.failure:
        yield f"why         {_why(row.failure)}"
    yield f"repository  {visible(detail.repo)}, from {row.base_commit[:12]}, lands on {one_line(detail.target_branch or 'no branch')}"
    if row.after:
        yield f"after       {', '.join(map(one_line, row.after))}"
    yield f"workspace   {visible(row.workspace or '—')}"
    yield f"diff        {diff_size(row)}" + ("" if row.files_changed is None else f" in {plural(row.files_changed, 'file')}")
    yield f"tokens      {count(row.input_tokens)} in ({count(row.cached_tokens)} cached), {count(row.output_tokens)} out"
    yield from ("", "prompt:", *_indented(detail.prompt))
    for attempt in detail.attempts:
        yield from ("", *_attempt_lines(attempt, detail.attempts_allowed))
    for check in detail.checks:
        yield from ("", *_check_lines(check))
    for title, texts in (("note", detail.notes), ("comment", detail.comments)):
        for text in texts:
            yield from ("", f"{title}:", *_indented(text))
    if detail.live_text:
        yield from ("", "writing now:", *_indented(tail(detail.live_text)))


def tail(text: str) -> str:
    """The last lines of what a model is writing, wrapped: it may be one line without an end."""
    room = (columns() or 100) - 4
    lines = [part for line in visible(text).split("\n") for part in textwrap.wrap(line, room, break_on_hyphens=False) or [""]]
    return "\n".join(["…", *lines[-LIVE_LINES:]] if len(lines) > LIVE_LINES else lines)


def _why(failure: Failure) -> str:
    """The failure's kind and message; only the message where it says the kind itself."""
    message = visible(failure.message)
    return message if message.startswith(failure.kind) else f"{failure.kind}: {message}" if message else failure.kind


def _attempt_lines(attempt: AttemptView, allowed: int) -> Iterator[str]:
    took = (
        "at work" if attempt.ended_at is None else f"{age(attempt.ended_at - attempt.started_at)}, {one_line(attempt.outcome or 'ended')}"
    )
    resumed = f", resumed {plural(attempt.resumptions, 'time')}" if attempt.resumptions else ""
    yield f"attempt {attempt.number} of {allowed}: {took}, {plural(attempt.steps, 'step')}, {count(attempt.output_tokens)} tokens out{resumed}"
    if attempt.failure:
        yield from _indented(_why(attempt.failure))


def _check_lines(check: CheckOutput) -> Iterator[str]:
    ended = "has not run" if check.seconds is None else "ran out of time" if check.exit_code is None else f"exits {check.exit_code}"
    took = "" if check.seconds is None else f" after {check.seconds:.1f} s"
    colour = "green" if check.exit_code == 0 else "reset" if check.seconds is None else "red"
    yield paint(f"check `{one_line(check.command)}`: {ended}{took}", colour)
    yield from _indented(check.output)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in visible(text).rstrip().split("\n")] if text.strip() else []


@click.command()
@click.argument("task")
@with_json
@with_home
def cancel(home: Home, as_json: bool, task: str) -> None:
    """Stop a task. Its workspace and what it has done so far stay.

    \b
    Example:  stationmaster cancel fix-rounding
    """
    tell(station(home).cancel(task), as_json)


@click.command()
@click.argument("task")
@click.option("--comment", default="", metavar="TEXT", help="A word to the agent, at the start of the new attempt.")
@with_json
@with_home
def retry(home: Home, as_json: bool, task: str, comment: str) -> None:
    """Queue an ended task again: a new attempt in a new workspace, from the target branch as it is now.

    \b
    Example:  stationmaster retry fix-rounding --comment "half a cent rounds to even"
    """
    tell(station(home).retry(task, comment), as_json)


@click.command()
@click.argument("task")
@click.argument("text", nargs=-1, required=True)
@with_json
@with_home
def say(home: Home, as_json: bool, task: str, text: tuple[str, ...]) -> None:
    """A word to the agent at work; it hears it after its current step.

    \b
    Example:  stationmaster say fix-rounding "the tests of June are the ones that matter"
    """
    words = " ".join(text)
    if not words.strip():
        raise click.BadParameter("nothing to say", param_hint="TEXT")
    row = station(home).say(task, words)
    if as_json:
        print_json(row)
    else:
        say_line(f"{one_line(row.id)} will hear it after its current step")


def tell(row: TaskRow, as_json: bool) -> None:
    """A command's answer: the task as it is now."""
    if as_json:
        print_json(row)
        return
    say_line(f"{one_line(row.id)} is {state_word(row)}" + (f", waiting for {one_line(row.waiting_for)}" if row.waiting_for else ""))
    if not on_terminal() or not row.failure:
        return
    say_line(f"    {_why(row.failure)}")
