"""What each tool takes. Names and arguments are a contract: scripts and trajectories use them.

The schemas that the model is told and the validation of what it sends come from the same classes.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, cast

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agents.decoding import NotUnderstood, decoded
from agents.errors import ToolFailed
from agents.messages import ToolCall
from agents.model import ToolSchema

SHOWN_LINES = 400
COMMAND_S = 120.0
LONGEST_COMMAND_S = 600.0
NAMED = 10
"""So many things that are wrong with a call's arguments are told of."""


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


_Line = Annotated[str, Field(min_length=1), AfterValidator(_no_nul)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Read(_Arguments):
    """Read a text file of the workspace, with line numbers."""

    path: _Line
    offset: Annotated[int, Field(ge=1, description="first line, from 1")] = 1
    limit: Annotated[int, Field(ge=1, le=2000, description="how many lines")] = SHOWN_LINES


class List(_Arguments):
    """List a folder of the workspace: all files beneath it when they are few, else what it holds itself."""

    path: _Line = "."


class Search(_Arguments):
    """Find lines that match an extended regular expression (as in `grep -E`; \\d, \\w, \\s and \\b work too), case-sensitive."""

    pattern: _Line
    path: Annotated[_Line, Field(description="file or folder to search in")] = "."


class Edit(_Arguments):
    """Replace text in a file. `old` must occur exactly once, character by character, white space included: quote enough lines to make
    it unique, without the line numbers that `read` shows. Everything outside of it stays as it is.
    """

    path: _Line
    old: str
    new: str


class Write(_Arguments):
    """Create a file, or replace all of it. To change part of a file use `edit`."""

    path: _Line
    content: str


class Run(_Arguments):
    """Run a shell command (`sh -c`) in the workspace's top folder. There is no network, no terminal and no input; what it leaves running is ended."""

    command: _Line
    timeout_s: Annotated[float, Field(gt=0, le=LONGEST_COMMAND_S)] = COMMAND_S


class Note(_Arguments):
    """Leave a note for the person who will review the work: a decision, an assumption, something found on the way."""

    text: str


class Submit(_Arguments):
    """Say that the task is done, or cannot be done. The task's checks then run; if they fail you get their output and go on."""

    summary: Annotated[str, Field(description="what was done, for the reviewer: two or three sentences")]


AnyArguments = Read | List | Search | Edit | Write | Run | Note | Submit
_KINDS: dict[str, type[AnyArguments]] = {
    "read": Read,
    "list": List,
    "search": Search,
    "edit": Edit,
    "write": Write,
    "run": Run,
    "note": Note,
    "submit": Submit,
}


@cache
def schemas() -> tuple[ToolSchema, ...]:
    """In a fixed order, always the same bytes: they are part of the prefix that all agents share in the engine's cache."""
    return tuple(
        ToolSchema(
            name=name, description=" ".join((kind.__doc__ or "").split()), parameters=msgspec.Raw(msgspec.json.encode(_schema(kind)))
        )
        for name, kind in _KINDS.items()
    )


def parsed(call: ToolCall) -> AnyArguments:
    """Raises `ToolFailed` with all that is wrong and what the tool takes."""
    kind = _KINDS.get(call.name)
    if kind is None:
        raise ToolFailed(f"There is no tool {call.name[:80]!r}. Tools: {', '.join(_KINDS)}.")
    try:
        arguments = decoded(call.arguments or "{}")
    except NotUnderstood as error:
        raise ToolFailed(f"The arguments are not valid JSON ({error}); nothing was run. {_takes(call.name, kind)}") from None
    if not isinstance(arguments, dict):
        raise ToolFailed(f"The arguments must be a JSON object; nothing was run. {_takes(call.name, kind)}")
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in entry['loc'])[:80]}: {entry['msg']}" for entry in error.errors(include_url=False)[:NAMED]
        )
        raise ToolFailed(f"Wrong arguments, nothing was run. {wrong}. {_takes(call.name, kind)}") from None


def _takes(name: str, kind: type[AnyArguments]) -> str:
    fields = ", ".join(field if info.is_required() else f"{field} (optional)" for field, info in kind.model_fields.items())
    return f"`{name}` takes: {fields}."


def _schema(kind: type[AnyArguments]) -> dict[str, Any]:
    return cast(dict[str, Any], _without_titles(kind.model_json_schema()))


def _without_titles(schema: object) -> object:
    """Pydantic's schema without what only costs tokens."""
    if not isinstance(schema, dict):
        return schema
    entries = cast(dict[str, object], schema)
    dropped = {"title"} | ({"description"} if "properties" in entries else set[str]())
    kept = {key: value for key, value in entries.items() if key not in dropped or not isinstance(value, str)}
    return {key: _without_titles(value) for key, value in kept.items()}
