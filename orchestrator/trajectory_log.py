"""Trajectories as documents: read from their files, never parsed further than a client needs."""

from __future__ import annotations

import msgspec

from agents.decoding import NotUnderstood
from agents.messages import System
from agents.trajectory import read_line
from orchestrator import lookups
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.store import Database
from orchestrator.views import AttemptView, LogDocument


class _Role(msgspec.Struct):
    role: str


def asked_attempt(db: Database, task: str, number: int | None) -> AttemptView:
    """The attempt of that number, or the newest. UserError when there is no such task or attempt."""
    found, newest = lookups.attempt(db, task, number), lookups.attempt(db, task)
    if newest is None:
        raise UserError(f"task {task} has no attempt yet", hint=f"`stationmaster show {task}` tells what it waits for")
    if found is None:
        raise UserError(f"task {task} has no attempt {number}", hint=f"the newest is {newest.number}")
    return found


def log_document(home: Home, task: str, attempt: AttemptView, step: int | None) -> LogDocument:
    """All messages of an attempt, or those of one step (a reply and its tool results; counted from 1). Blocks: run it in a thread.

    UserError when there is no such step. A torn last line (the station is writing, or was killed while it did) is left out; in
    place of a damaged line further up stands a message that says so.
    """
    path = home.trajectory(task, attempt.number)
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    messages = [_whole(line, number) for number, line in enumerate(lines, 1) if line]
    if step is not None:
        messages = _step(messages, step)
        if not messages:
            raise UserError(
                f"attempt {attempt.number} of task {task} has no step {step}", hint=f"`stationmaster log {task}` shows all of them"
            )
    return LogDocument(task=task, attempt=attempt.number, messages=messages)


def _whole(line: bytes, number: int) -> msgspec.Raw:
    try:
        read_line(line)
    except NotUnderstood as damage:
        line = msgspec.json.encode(System(text=f"[line {number} of this attempt's conversation is damaged and cannot be shown: {damage}]"))
    return msgspec.Raw(line)


def _step(messages: list[msgspec.Raw], step: int) -> list[msgspec.Raw]:
    decoder = msgspec.json.Decoder(_Role)
    number, chosen = 0, list[msgspec.Raw]()
    for message in messages:
        number += decoder.decode(message).role == "assistant"
        if number == step:
            chosen.append(message)
    return chosen
