"""Errands to the station: looking a task up, and commands. Each runs in a thread and comes back as a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from textual.message import Message

from orchestrator.views import DiffDocument, MergeView, TaskDetail
from tui.client import EXPECTED, Lane, Station, Trouble, trouble_of
from tui.trajectory_lines import Entry, read_log
from tui.verbs import Verb


@dataclass
class DetailArrived(Message):
    """`entries` is None when only the detail was asked for (the trajectory shown before still stands)."""

    task: str
    detail: TaskDetail
    entries: list[Entry] | None


@dataclass
class DiffArrived(Message):
    task: str
    document: DiffDocument


@dataclass
class LookFailed(Message):
    """A look-up gave nothing. `what` says which."""

    task: str
    what: Literal["detail", "diff"]
    trouble: Trouble


@dataclass
class CommandDone(Message):
    verb: Verb
    task: str
    text: str
    refused: bool = False


@dataclass
class CommandFailed(Message):
    verb: Verb
    task: str
    trouble: Trouble


class Desk:
    """Look-ups take turns in one thread, where a newer one replaces one that still waits; commands in another, in order.

    Merges wait for the branch's other merges, so they have a thread of their own: no other command waits for them.
    """

    def __init__(self, station: Station, post: Callable[[Message], object]) -> None:
        self._station = station
        self._post = post
        self._looks = Lane("look-ups", depth=1, newest_wins=True)
        self._diffs = Lane("diffs", depth=1, newest_wins=True)
        self._commands = Lane("commands", depth=32)
        self._merges = Lane("merges", depth=256)

    def _lanes(self) -> tuple[Lane, ...]:
        return self._looks, self._diffs, self._commands, self._merges

    def start(self) -> None:
        for lane in self._lanes():
            lane.start()

    def close(self) -> None:
        for lane in self._lanes():
            lane.close()

    def look_up(self, task: str, *, trajectory: bool) -> None:
        """Fetch a task's detail and, when asked, its trajectory."""
        self._looks.submit(lambda: self._look(task, trajectory))

    def _look(self, task: str, trajectory: bool) -> None:
        try:
            detail = self._station.task(task)
            # A task that never began has no trajectory to ask for.
            entries = read_log(self._station.log(task)) if trajectory and detail.row.attempt > 0 else None
        except EXPECTED as error:
            self._post(LookFailed(task, "detail", trouble_of(error)))
        else:
            self._post(DetailArrived(task, detail, entries))

    def look_at_diff(self, task: str, *, remember: bool) -> None:
        """Fetch a task's diff. `remember`: the station shall know that a person has seen this snapshot."""
        self._diffs.submit(lambda: self._diff(task, remember))

    def _diff(self, task: str, remember: bool) -> None:
        try:
            document = self._station.diff(task)
            if remember:
                self._station.look(task)
        except EXPECTED as error:
            self._post(LookFailed(task, "diff", trouble_of(error)))
        else:
            self._post(DiffArrived(task, document))

    def command(self, verb: Verb, task: str, text: str = "") -> None:
        """Give a command. Its result comes as CommandDone or CommandFailed."""
        if not self._commands.submit(lambda: self._start(verb, task, text)):
            self._post(CommandFailed(verb, task, _TOO_MANY))

    def _start(self, verb: Verb, task: str, text: str) -> None:
        # Handed over from here, so that a merge never overtakes the approval given just before it.
        if verb != "merge":
            self._run(verb, task, text)
        elif not self._merges.submit(lambda: self._run(verb, task, text)):
            self._post(CommandFailed(verb, task, _TOO_MANY))

    def _run(self, verb: Verb, task: str, text: str) -> None:
        try:
            done = self._call(verb, task, text)
        except EXPECTED as error:
            self._post(CommandFailed(verb, task, trouble_of(error)))
        else:
            self._post(done)

    def _call(self, verb: Verb, task: str, text: str) -> CommandDone:
        match verb:
            case "approve":
                self._station.approve(task)
                return CommandDone(verb, task, f"{task} approved; m merges it")
            case "reject":
                self._station.reject(task, text)
                return CommandDone(verb, task, f"{task} goes back to the agent with your comment" if text else f"{task} rejected")
            case "merge":
                return _merged(self._station.merge(task))
            case "cancel":
                self._station.cancel(task)
                return CommandDone(verb, task, f"{task} cancelled")
            case "retry":
                self._station.retry(task, text)
                return CommandDone(verb, task, f"{task} is queued again")
            case "say":
                self._station.say(task, text)
                return CommandDone(verb, task, f"{task} hears it after its current step")


_TOO_MANY = Trouble(message="too many commands are waiting for the station", hint="try again in a moment")


def _merged(view: MergeView) -> CommandDone:
    if view.commit is not None:
        return CommandDone("merge", view.task, f"{view.task} merged into {view.target} as {view.commit[:10]}")
    conflicts = f" ({', '.join(view.conflicts[:5])})" if view.conflicts else ""
    return CommandDone("merge", view.task, f"{view.task} not merged: {view.message}{conflicts}", refused=True)
