"""Tool calls put together out of a stream's deltas."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from agents.errors import ModelFault
from agents.messages import ToolCall
from agents.wire import CallDelta

MOST_CALLS = 128
NAME_CHARACTERS = 128
"""A longer name is no tool's: it is cut, and refused as unknown."""
ID_CHARACTERS = 256


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list[str])


class CallAssembler:
    """Tool calls out of their deltas, by index; an index or id that is missing, repeated or wrong is put right where it can be told.

    At most `MOST_CALLS`: `ModelFault` for one more.
    """

    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._order: list[_Call] = []

    def take(self, delta: CallDelta) -> str:
        """Adds a delta; gives the piece of its arguments."""
        function = delta.function
        name = (function.name if function else None) or ""
        arguments = (function.arguments if function else None) or ""
        call = self._known(delta, name)
        if call is None:
            if len(self._order) >= MOST_CALLS:
                raise ModelFault(f"the reply held more than {MOST_CALLS} tool calls")
            call = _Call(id=delta.id or "", name=name[:NAME_CHARACTERS])
            self._order.append(call)
            self._by_index[len(self._order) - 1 if delta.index is None else delta.index] = call
        else:
            call.id = call.id or delta.id or ""
            if name and not call.arguments and not call.name.endswith(name):
                call.name = (call.name + name)[
                    :NAME_CHARACTERS
                ]  # a name in pieces; a name that only repeats (some send it with every delta) changes nothing
        if arguments:
            call.arguments.append(arguments)
        return arguments

    def _known(self, delta: CallDelta, name: str) -> _Call | None:
        """The call that a delta goes on with; None when it begins one."""
        if not self._order:
            return None
        last = self._order[-1]
        if delta.index is None:
            begins = bool(name) and bool(last.arguments) and (delta.id != last.id if delta.id else name != last.name)
            return None if begins else last
        call = self._by_index.get(delta.index)
        if call is None:
            return None if name or delta.id else last
        other_id = bool(delta.id) and bool(call.id) and delta.id != call.id
        return None if other_id and name else call

    def calls(self) -> tuple[ToolCall, ...]:
        """In the order in which they began. Each has an id of its own, made up where the engine gave none, a novel or the same twice."""
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._order:
            call_id = call.id if 0 < len(call.id) <= ID_CHARACTERS and call.id not in seen else f"call-{secrets.token_hex(6)}"
            seen.add(call_id)
            calls.append(ToolCall(id=call_id, name=call.name, arguments="".join(call.arguments)))
        return tuple(calls)
