"""An attempt's trajectory as lines: thinking, text, tool calls and, folded, what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agents.decoding import NotUnderstood, decoded
from agents.messages import Assistant, Message, System, ToolCall, ToolResult, User
from orchestrator.views import LogDocument
from tui.foreign import lines_of, one_line
from tui.format import counted, duration, tokens
from tui.line import BLANK, Line, Span, line

FOLDED_LINES = 8
FOLDED_THINKING = 6
# Beyond this the older part is left out of the screen; `stationmaster log` has it all.
MOST_MESSAGES = 600

_DECODER = msgspec.json.Decoder(Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An entry of the trajectory that is no message of ours."""

    reason: str


Entry = Message | Unreadable


def read_log(document: LogDocument) -> list[Entry]:
    """The messages of a trajectory, in order. What cannot be read keeps its place and says so."""
    entries: list[Entry] = []
    for raw in document.messages:
        try:
            entries.append(_DECODER.decode(raw))
        except (ValueError, RecursionError) as bad:  # msgspec's errors, and UnicodeDecodeError
            entries.append(Unreadable(reason=str(bad)))
    return entries


def trajectory_lines(entries: Sequence[Entry], *, unfolded: bool = False) -> list[Line]:
    """Lines for all entries, the newest last. Folded: long results show their first and last lines."""
    lines: list[Line] = []
    if len(entries) > MOST_MESSAGES:
        lines.append(line(Span(f"… {len(entries) - MOST_MESSAGES:,} earlier messages; `stationmaster log` shows them all", "dim")))
        lines.append(BLANK)
    step = sum(isinstance(entry, Assistant) for entry in entries[:-MOST_MESSAGES])
    for entry in entries[-MOST_MESSAGES:]:
        match entry:
            case System(text=text):
                lines += _folding("instructions", text, unfolded)
            case User(text=text):
                lines += _said(text, unfolded)
            case Assistant():
                step += 1
                lines += _reply(entry, step, unfolded)
            case ToolResult():
                lines += _result(entry, unfolded)
            case Unreadable(reason=reason):
                lines.append(line(Span("⚠ unreadable entry: ", "warn"), Span(one_line(reason), "dim")))
    return lines


def live_lines(text: str, step: int | None) -> list[Line]:
    """What the model writes at this moment."""
    head = line(Span(f"step {step} " if step is not None else "", "title"), Span("▌ writing now", "busy"))
    return [BLANK, head, *(line("  ", part) for part in lines_of(text, limit=4_000)[-40:])]


def folded(parts: list[str], most: int) -> list[str | None]:
    """The first and last of `parts`, `most` in all, with None where the rest was left out."""
    if len(parts) <= most + 1:
        return list(parts)
    head = (most + 1) // 2
    return [*parts[:head], None, *parts[len(parts) - (most - head) :]]


def block(text: str, *, indent: str, role: Span, most: int | None) -> list[Line]:
    """Lines of foreign text behind an indent; `role` lends its role. `most` None shows all."""
    parts = lines_of(text)
    kept = list[str | None](parts) if most is None else folded(parts, most)
    left_out = len(parts) - (len(kept) - kept.count(None))
    return [
        line(indent, Span(part, role.role))
        if part is not None
        else line(indent, Span(f"⋯ {counted(left_out, 'line')} folded (z)", "gutter"))
        for part in kept
    ]


def _folding(name: str, text: str, unfolded: bool) -> list[Line]:
    head = line(Span(name, "dim"), Span(f"  {len(text):,} characters", "gutter"))
    return [head, *block(text, indent="  ", role=Span("", "dim"), most=None)] if unfolded else [head]


def _said(text: str, unfolded: bool) -> list[Line]:
    return [BLANK, line(Span("to the agent", "accent")), *block(text, indent="  ", role=Span(""), most=None if unfolded else FOLDED_LINES)]


def _reply(reply: Assistant, step: int, unfolded: bool) -> list[Line]:
    facts = f"  {tokens(reply.usage.output_tokens)} tokens" if reply.usage else ""
    odd = "" if reply.finish_reason in {"stop", "tool_calls"} else f"  ended by {one_line(reply.finish_reason, limit=40)}"
    lines: list[Line] = [BLANK, line(Span(f"step {step}", "title"), Span(facts, "gutter"), Span(odd, "warn"))]
    if reply.reasoning.strip():
        lines += block(reply.reasoning.strip("\n"), indent="  ", role=Span("", "thinking"), most=None if unfolded else FOLDED_THINKING)
    if reply.text.strip():
        lines += block(reply.text.strip("\n"), indent="  ", role=Span(""), most=None if unfolded else 24)
    for call in reply.tool_calls:
        lines += _call(call, unfolded)
    return lines


def _call(call: ToolCall, unfolded: bool) -> list[Line]:
    name = one_line(call.name, limit=60)
    try:
        return _call_of(name, decoded(call.arguments, dict[str, object]), unfolded)
    except (NotUnderstood, RecursionError):  # the latter for what can be read, but is nested too deeply to be written
        return [line("  ", Span("▸ ", "busy"), Span(name, "strong"), Span(" "), Span(one_line(call.arguments), "warn"))]


def _call_of(name: str, arguments: dict[str, object], unfolded: bool) -> list[Line]:
    short = {key: value for key, value in arguments.items() if not (isinstance(value, str) and ("\n" in value or len(value) > 120))}
    head = line("  ", Span("▸ ", "busy"), Span(name, "strong"), Span(" "), *_arguments(short))
    lines: list[Line] = [head]
    for key, value in arguments.items():
        if key not in short:
            lines.append(line("    ", Span(f"{one_line(key, limit=60)}:", "dim")))
            lines += block(str(value), indent="      ", role=Span(""), most=None if unfolded else FOLDED_LINES)
    return lines


def _arguments(arguments: dict[str, object]) -> list[Span]:
    """A lone argument needs no name; several are told apart by theirs."""
    if len(arguments) == 1:
        return [Span(one_line(str(next(iter(arguments.values())))))]
    spans: list[Span] = []
    for key, value in arguments.items():
        spans += [Span(f"{one_line(key, limit=60)} ", "dim"), Span(f"{one_line(str(value))}  ")]
    return spans


def _result(result: ToolResult, unfolded: bool) -> list[Line]:
    mark = Span("✓", "good") if result.ok else Span("✗", "bad")
    time_taken = f" {duration(result.seconds)}" if result.seconds is not None else ""
    body = block(result.text, indent="    ", role=Span("", "dim" if result.ok else "plain"), most=None if unfolded else FOLDED_LINES)
    if len(body) == 1:
        return [line("    ", mark, Span(f"{time_taken} ", "gutter"), *body[0][1:])]
    return [line("    ", mark, Span(time_taken, "gutter")), *body]
