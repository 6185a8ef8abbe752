"""Trajectories as documents: read from their files, never parsed further than a client needs."""

from __future__ import annotations

import msgspec

from agents.decoding import NotUnderstood
from agents.messages import System
from agents.trajectory import read_line
from orchestrator.errors import UserError
from orchestrator.home import Home
from orchestrator.views import AttemptView, LogDocument


class _Role(msgspec.Struct):
    role: str


def log_document(home: Home, task: str, attempt: AttemptView | None, step: int | None) -> LogDocument:
    """All messages of an attempt, or those of one step (a reply and its tool results; counted from 1). Blocks: run it in a thread.

    UserError when there is no such attempt or step. A torn last line (the station is writing, or was killed while it did) is left out; in
    place of a damaged line further up stands a message that says so.
    """
    if attempt is None:
        raise UserError(f"task {task} has no attempt yet")
    path = home.trajectory(task, attempt.number)
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    messages = [_whole(line, number) for number, line in enumerate(lines, 1) if line]
    if step is not None:
        messages = _step(messages, step)
        if not messages:
            raise UserError(f"attempt {attempt.number} of task {task} has no step {step}")
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
