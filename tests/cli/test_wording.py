"""Every kind of fact has words, on one line, harmless to a terminal."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from orchestrator.cli.wording import event_line, fact_line
from orchestrator.events import AnyFact, Event

HOSTILE = "\x1b[31mred\nnext\u202e"


def sample(kind: type[msgspec.Struct]) -> Any:
    """A fact of that kind, with a hostile text wherever the agent, the engine or a person writes one."""
    told = {field.name: _value(field.type) for field in msgspec.inspect.type_info(kind).fields}  # type: ignore[union-attr]
    return kind(**told)


def _value(wanted: msgspec.inspect.Type) -> object:
    match wanted:
        case msgspec.inspect.StrType():
            return HOSTILE
        case msgspec.inspect.IntType():
            return 7
        case msgspec.inspect.FloatType():
            return 1.5
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.LiteralType():
            return wanted.values[0]
        case msgspec.inspect.UnionType():
            return _value(wanted.types[0])
        case _:
            return (HOSTILE,)


@pytest.mark.parametrize("kind", get_args(AnyFact), ids=lambda kind: kind.__name__)
def test_a_fact_is_told_in_one_harmless_line(kind: type[msgspec.Struct]) -> None:
    line = fact_line(sample(kind))
    assert line.isprintable()
    assert line != kind.__name__


def test_an_event_names_its_task_and_the_station_its_own() -> None:
    fact: Any = sample(get_args(AnyFact)[0])
    assert " fix-rounding  " in event_line(Event(seq=1, at=0.0, task="fix-rounding", attempt=1, fact=fact))
    assert " station  " in event_line(Event(seq=1, at=0.0, task=None, attempt=None, fact=fact))
