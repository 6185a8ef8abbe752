"""The shape of a task file, for pydantic: what keys there are, what each may hold, and how a wrong one is told.

`taskfile` imports it when it is needed: pydantic takes a moment to load.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from orchestrator.errors import UserError
from orchestrator.task import ATTEMPTS, Kind, Limits

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PROMPT_LIMIT = 1_000_000
LIST_LIMIT = 1_000
TITLE_LIMIT = 80
"""Characters of a title that is made from the prompt's first line."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Texts = Annotated[list[Text], BeforeValidator(_listed), Field(max_length=LIST_LIMIT)]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class LimitsForm(Form):
    steps: int = Field(Limits().steps, ge=1, le=100_000)
    tokens: int = Field(Limits().tokens, ge=1, le=10**12)
    seconds: float = Field(Limits().seconds, gt=0, le=10**8)


class SharedForm(Form):
    """What `[defaults]` may say for all tasks, and each task for itself."""

    kind: Kind = "coding"
    repo: Text | None = None
    base: Text | None = None
    checks: Texts = []
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    attempts: int = Field(ATTEMPTS, ge=1, le=100)
    limits: LimitsForm = Field(default_factory=lambda: LimitsForm.model_validate({}))
    best_of: Literal[1] = 1
    agent: Literal["builtin"] = "builtin"


class TaskForm(SharedForm):
    id: Text
    title: Annotated[str, Field(max_length=1_000)] = ""
    """Never blank once it is filled in: the prompt's first line stands in."""
    prompt: Annotated[str, Field(min_length=1, max_length=PROMPT_LIMIT)]
    after: Texts = []

    @model_validator(mode="after")
    def _titled(self) -> Self:
        self.title = self.title.strip() or _first_line(self.prompt)
        return self


def _first_line(prompt: str) -> str:
    line = prompt.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE_LIMIT else line[: TITLE_LIMIT - 1] + "…"


F = TypeVar("F", bound=Form)


def filled(form: type[F], table: Mapping[str, object], where: str) -> F:
    """The table as the form; a UserError for the first key that is wrong, an unknown one before all others."""
    try:
        return form.model_validate(table)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
    worst = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    raise _refusal(form, worst, where)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint, or '' when nothing is near."""
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean `{near[0]}`?" if near else ""


def _refusal(form: type[Form], problem: ErrorDetails, where: str) -> UserError:
    location = list(problem["loc"])
    key = _key(location)
    match problem["type"], location[0]:
        case "extra_forbidden", _:
            keys = LimitsForm.model_fields if len(location) > 1 else form.model_fields
            hint = did_you_mean(str(location[-1]), keys) or f"known keys: {', '.join(keys)}"
            return UserError(f"{where}: unknown key `{key}`", hint=hint)
        case "missing", _:
            return UserError(f"{where} has no `{key}`", hint="each [[task]] needs an `id` and a `prompt`")
        case _, "best_of":
            return UserError(f"{where}: `best_of` is not available yet", hint="leave it out, or write `best_of = 1`")
        case _, "agent":
            return UserError(
                f"{where}: other agents than the builtin one are not available yet", hint='leave `agent` out, or write "builtin"'
            )
        case "literal_error", _:
            near = did_you_mean(str(problem["input"]), get_args(Kind)) or f"known are: {', '.join(get_args(Kind))}"
            return UserError(f"{where}: `{key}` cannot be {problem['input']!r}", hint=near)
        case "model_type" | "dict_type", _:
            return UserError(f"{where}: `{key}` should be a table, not {_shown(problem['input'])}", hint="write `limits = { steps = 60 }`")
        case _:
            text = problem["msg"].removeprefix("Input ").replace("Input should", "should")
            return UserError(f"{where}: `{key}` {text[0].lower()}{text[1:]}, not {_shown(problem['input'])}", hint="correct the value")


def _key(location: list[int | str]) -> str:
    """`limits.steps`, `checks[1]`: as a person would point at it, counting from 1."""
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
