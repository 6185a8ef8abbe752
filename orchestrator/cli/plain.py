"""Line output: what happens, one short line each, and the totals every few seconds. For a pipe, a log, a terminal without a dashboard."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from agents.events import ModelRetried, Noted, ToolFinished
from orchestrator.cli.output import clip, count, one_line, rate, width
from orchestrator.cli.watch import Watch
from orchestrator.cli.wording import fact_line
from orchestrator.events import AttemptEnded, AttemptResumed, CheckFinished, EngineDown, EngineUp, Event, StateChanged, StationStopped

TOTALS_EVERY_S = 3.0
LINE_CELLS = 118
NAME_CELLS = 26

SHOWN = (ToolFinished, ModelRetried, Noted, CheckFinished, AttemptResumed, EngineDown, EngineUp, StationStopped)
# Between these two a task has only been given its place.
PASSING = frozenset({"admitted", "preparing"})


class LineOutput:
    """Turns what a watch saw into lines for `say`."""

    def __init__(self, watch: Watch, say: Callable[[str], None]) -> None:
        self._watch = watch
        self._say = say
        self._began = time.monotonic()
        self._next_totals = self._began + TOTALS_EVERY_S
        longest = max((width(task) for task in watch.tasks), default=8)
        self._cells = min(longest, NAME_CELLS)
        self._warning = ""

    def tell(self, events: list[Event]) -> None:
        """Lines for `events` and for a warning of the station that comes or goes, then the totals when it is time."""
        for event in events:
            if shown(event) and (event.task is None or event.task in self._watch.tally.tasks):
                self._say(self._line(event))
        self._tell_warning(self._watch.now.station.warning)
        if time.monotonic() >= self._next_totals:
            self._next_totals = time.monotonic() + TOTALS_EVERY_S
            self._say(self.totals_line())

    def _tell_warning(self, now: str) -> None:
        # What changes in it by the second (bytes that are free) is the same warning.
        before, self._warning = self._warning, now
        if bool(before) != bool(now) or _without_numbers(before) != _without_numbers(now):
            self._say(f"{self._clock()}  ── " + (f"warning: {one_line(now)}" if now else f"no longer: {one_line(before)}"))

    def _line(self, event: Event) -> str:
        name = clip(one_line(event.task or "station"), self._cells)
        blank = " " * (self._cells - width(name))
        return clip(f"{self._clock()}  {name}{blank}  {fact_line(event.fact)}", LINE_CELLS)

    def totals_line(self) -> str:
        watch = self._watch
        states = Counter(watch.rows[task].state for task in watch.tasks if task in watch.rows)
        tasks = ", ".join(f"{number} {state}" for state, number in states.most_common())
        line = f"{self._clock()}  ── {tasks} · {count(watch.totals.output_tokens)} tokens out, {rate(watch.totals.tokens_per_s)} tokens/s"
        told = watch.engine
        if told is None:
            return line
        if not told.healthy:
            return f"{line} · engine: {one_line(told.message)}"
        return f"{line} · engine: {'—' if told.running is None else told.running} running, {'—' if told.waiting is None else told.waiting} waiting"

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.1f}s"


def _without_numbers(text: str) -> str:
    return "".join(character for character in text if not character.isdigit())


def shown(event: Event) -> bool:
    """Whether line output has a line for it: changes of state, tool calls, checks, and what goes wrong."""
    if isinstance(event.fact, StateChanged):
        return event.fact.new not in PASSING
    if isinstance(event.fact, AttemptEnded):
        return event.fact.failure is not None
    return isinstance(event.fact, SHOWN)
