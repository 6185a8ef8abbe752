"""What one request is answered: a step of a script, words of a wanted length, or the plain statement that this is a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from orchestrator.serving.sim.script import Script, ScriptStep
from orchestrator.serving.sim.tokens import split, words
from orchestrator.serving.sim.wire import ChatBody

PieceKind: TypeAlias = Literal["reasoning", "content", "call", "arguments"]


class Piece(NamedTuple):
    """One token. A `call` piece opens a tool call and holds the tool's name: one token, like the mark that opens a call in a real vocabulary."""

    kind: PieceKind
    text: str
    call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`pieces` holds at least one token; `finish_reason` is the client's, for an answer that is not cut short."""

    pieces: Sequence[Piece]
    finish_reason: Literal["stop", "tool_calls", "length"] = "stop"


def filled(tokens: int, draw: Random) -> Reply:
    return Reply(pieces=[Piece("content", word) for word in words(tokens, draw)], finish_reason="length")


def said(text: str) -> Reply:
    return Reply(pieces=_pieces("content", text))


def scripted(step: ScriptStep, draw: Random, *, break_arguments: bool) -> Reply:
    """With `break_arguments` each call's arguments lose their second half, and with it their meaning as JSON."""
    pieces = _pieces("reasoning", step.thinking) + _pieces("content", step.text)
    pieces += [Piece("content", word) for word in words(step.filler_tokens, draw)]
    for index, call in enumerate(step.call):
        arguments = call.arguments_json()
        pieces.append(Piece("call", call.tool, index))
        pieces += _pieces("arguments", arguments[: len(arguments) // 2] if break_arguments else arguments, index)
    return Reply(pieces=pieces, finish_reason="tool_calls" if step.call else "stop")


def reply_to_chat(
    body: ChatBody, session: str | None, scripts: Mapping[str, Script], *, limit: int, draw: Random, break_arguments: bool = False
) -> Reply:
    """`limit` is the most tokens that will be sent: what is filled with words is filled up to it."""
    script = scripts.get(session or "")
    if script is None and body.ignore_eos:
        return filled(limit, draw)
    reply = _by_script(script, session, body, draw, break_arguments=break_arguments)
    missing = min(body.min_tokens, limit) - len(reply.pieces)
    if missing > 0 and reply.finish_reason == "stop":
        return Reply(pieces=[*reply.pieces, *filled(missing, draw).pieces])
    return reply


def _by_script(script: Script | None, session: str | None, body: ChatBody, draw: Random, *, break_arguments: bool) -> Reply:
    if script is None:
        task = f"the session `{session[:80]}`" if session else "a request without an `X-Session-ID`"
        return said(
            f"This is a simulated engine, there is no model behind it. It has no script for {task}, so nothing was read, changed or solved."
        )
    replies, last_result = _progress(body)
    if replies >= len(script.step):
        return said(
            f"This is a simulated engine. Its script for `{script.task}` ended after {len(script.step)} replies, so it has nothing more to propose."
        )
    step = script.step[replies]
    if step.expect is not None and step.expect not in last_result:
        return said(
            f"This is a simulated engine. Step {replies + 1} of its script for `{script.task}` expects {step.expect!r} in the last tool result, "
            "which is not there. The script does not fit what happened, so nothing is called."
        )
    return scripted(step, draw, break_arguments=break_arguments)


def _progress(body: ChatBody) -> tuple[int, str]:
    """How many replies of the model were understood, and the last tool result to one of them.

    A reply whose arguments were broken, by a fault or by the limit of tokens, has moved nothing: its step is offered again.
    """
    replies, result, understood = 0, "", True
    for message in body.messages:
        if message.role == "assistant":
            understood = message.was_understood()
            replies += understood
        elif message.role == "tool" and understood:
            result = message.text()
    return replies, result


def _pieces(kind: PieceKind, text: str, call: int = 0) -> list[Piece]:
    return [Piece(kind, token, call) for token in split(text)]
