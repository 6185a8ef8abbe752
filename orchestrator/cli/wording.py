"""Facts of the event log as one short line each, for `events` and for line output."""

from __future__ import annotations

import time

from agents import events as agent
from orchestrator import events as fact
from orchestrator.cli.output import clip, one_line, plural
from orchestrator.events import AnyFact, Event

# A line of output is one line of a terminal, not a page.
FACT_CELLS = 160


def event_line(event: Event) -> str:
    """`12:00:05 fix-rounding  model replied: …`; the station's own facts go under `station`."""
    clock = time.strftime("%H:%M:%S", time.localtime(event.at))
    who = one_line(event.task) if event.task is not None else "station"
    return f"{clock} {who}  {clip(fact_line(event.fact), FACT_CELLS)}"


def fact_line(told: AnyFact) -> str:
    """What happened in words, harmless to a terminal."""
    return one_line(_agent_words(told) or _task_words(told) or _station_words(told))


def _agent_words(told: AnyFact) -> str:
    match told:
        case agent.ModelAsked():
            return f"step {told.step}: asks the model"
        case agent.ModelRetried():
            return f"step {told.step}: asks again in {told.wait_s:.1f} s: {told.reason}"
        case agent.ModelReplied():
            tokens = "unknown" if told.output_tokens is None else told.output_tokens
            return f"step {told.step}: the model replied, {tokens} tokens, {plural(told.tool_calls, 'tool call')} ({told.finish_reason})"
        case agent.ToolStarted():
            return f"step {told.step}: {told.summary} …"
        case agent.ToolFinished(tool="submit", ok=True):
            # Whether it was right is what the checks say afterwards.
            return f"step {told.step}: {told.summary}"
        case agent.ToolFinished():
            return f"step {told.step}: {'✓' if told.ok else '✗'} {told.summary} ({told.seconds:.1f} s)"
        case agent.Noted():
            return f"notes: {told.text}"
        case agent.StepCompleted():
            return f"step {told.step}: complete"
        case _:
            return ""


def _task_words(told: AnyFact) -> str:
    match told:
        case fact.TaskAdded():
            return f"added: {told.title}"
        case fact.StateChanged():
            return f"{told.old} → {told.new}{f': {told.reason}' if told.reason else ''}"
        case fact.WorkspaceCreated():
            return f"workspace {told.workspace} in {told.seconds:.1f} s"
        case fact.AttemptResumed():
            return f"goes on after step {told.step} (resumption {told.resumption})"
        case fact.SnapshotTaken():
            left_out = f"; not taken: {', '.join(told.left_out)}" if told.left_out else ""
            return f"snapshot {told.commit[:12]}: {plural(told.files_changed, 'file')}, +{told.insertions} -{told.deletions}{left_out}"
        case fact.CheckFinished():
            ended = "ran out of time" if told.exit_code is None else f"exits {told.exit_code}"
            return f"check `{told.command}` {ended} after {told.seconds:.1f} s"
        case fact.AttemptEnded():
            why = f" ({told.failure})" if told.failure and told.failure != told.outcome else ""
            return f"attempt ended: {told.outcome}{why}{f': {told.message}' if told.message else ''}"
        case fact.Commented():
            return f"comment: {told.text}"
        case _:
            return ""


def _station_words(told: AnyFact) -> str:
    match told:
        case fact.Approved():
            return f"approved {told.snapshot_commit[:12]}"
        case fact.MergeLanded():
            return f"merged into {told.target} as {told.commit[:12]}"
        case fact.MergeRefused():
            where = f" ({', '.join(told.conflicts)})" if told.conflicts else ""
            return f"not merged into {told.target}: {told.reason}{where}"
        case fact.StationStarted():
            return f"station {told.version} started, pid {told.pid}"
        case fact.StationStopped():
            return "station stopped"
        case fact.EngineUp():
            return f"engine {told.model} answers at {told.url}"
        case fact.EngineDown():
            return f"engine at {told.url} does not answer: {told.reason}"
        case _:
            return str(type(told).__name__)
