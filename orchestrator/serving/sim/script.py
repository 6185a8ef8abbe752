"""Scripts: what the simulated model says for a task, step by step.

Step i answers the request whose history holds i replies of the model that could be understood, so nothing is remembered between requests and
an interrupted task goes on where it was. A script only proposes tool calls; whether they help is found out by those who run them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from orchestrator.errors import UserError


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: dict[str, object] = {}

    def arguments_json(self) -> str:
        return msgspec.json.encode(self.arguments).decode()


class ScriptStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply of the model. At least one of `thinking`, `text`, `call` and `filler_tokens` is there."""

    thinking: str = ""
    text: str = ""
    filler_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """So many tokens of meaningless words after `text`, to give a reply a length."""
    expect: str | None = None
    """Must occur in the last tool result; otherwise the script does not fit what happened and nothing is called."""
    call: tuple[ScriptCall, ...] = ()

    def __post_init__(self) -> None:
        if not (self.thinking or self.text or self.call or self.filler_tokens):
            raise ValueError("a step needs `thinking`, `text`, `call` or `filler_tokens`")


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: Annotated[str, msgspec.Meta(min_length=1)]
    """The value of the header `X-Session-ID` for which the script is."""
    step: Annotated[tuple[ScriptStep, ...], msgspec.Meta(min_length=1)]


def load_scripts(folder: Path | None) -> Mapping[str, Script]:
    """All `*.toml` of the folder by task. Raises UserError, naming file and key."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UserError(f"no script folder {folder}", hint="`--script` takes a folder of files like the demo's")
    scripts: dict[str, Script] = {}
    files: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        script = _load(path)
        if script.task in scripts:
            raise UserError(f"{path}: task `{script.task}` has a script in {files[script.task].name} already", hint="one file per task")
        scripts[script.task], files[script.task] = script, path
    return scripts


def _load(path: Path) -> Script:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Script)
    except (msgspec.MsgspecError, ValueError, OSError) as bad:
        raise UserError(f"{path}: {bad}", hint="the format of scripts is described in docs/simulator.md") from bad
