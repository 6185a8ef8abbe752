"""The task file: TOML, checked as a whole before anything is queued.

    [defaults]                     # for all tasks: kind repo base checks priority attempts limits best_of agent
    checks = "pytest -q"

    [[task]]
    id = "round-half-even"         # unique; names folders and branches
    prompt = "…"
    title = "…"                    # default: the prompt's first line
    kind = "coding"                # or document, accounting
    after = ["another-id"]
    limits = { steps = 60, tokens = 200_000, seconds = 3600 }

A relative `repo` is looked for from the folder of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from orchestrator.errors import UserError
from orchestrator.eventlog import storable_text
from orchestrator.queue.adding import describe_cycle, find_cycle, id_problem
from orchestrator.task import Limits, TaskSpec

if TYPE_CHECKING:
    from orchestrator.taskform import TaskForm
    from workspaces.hub import Base

_FILE_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task as written, before git was asked. `repo` is the form's, absolute; None when the file names none."""

    form: TaskForm
    repo: Path | None


def parse_task_file(path: Path, *, queued: Collection[str] = ()) -> list[TaskDraft]:
    """The tasks in the order of the file; a UserError that names file and line, task or key for the first thing that is wrong.

    An `after` may name a task of the file or one of `queued`: the ids that the home has already.
    """
    document = _load(path)
    defaults = _defaults(document, path)
    drafts = [_draft(defaults, table, f"{path}: task {number}", path.parent) for number, table in enumerate(_tables(document, path), 1)]
    check_drafts(drafts, source=str(path), queued=queued)
    return drafts


def check_drafts(drafts: Sequence[TaskDraft], *, source: str, queued: Collection[str] = ()) -> None:
    """UserError for duplicate ids, for an `after` that names neither a draft nor one of `queued`, and for cycles."""
    forms = [draft.form for draft in drafts]
    numbers: dict[str, int] = {}
    for number, form in enumerate(forms, 1):
        first = numbers.setdefault(form.id.lower(), number)
        if first != number:
            raise UserError(f"{source}: tasks {first} and {number} have the same id `{form.id}`", hint="each task needs an id of its own")
    from orchestrator.taskform import did_you_mean

    known = {form.id for form in forms} | set(queued)
    for form in forms:
        for needed in form.after:
            if needed not in known:
                hint = did_you_mean(needed, known) or "`after` takes the ids of other tasks"
                raise UserError(f"{source}: task `{form.id}`: `after` names `{needed}`, which does not exist", hint=hint)
    ring = find_cycle({form.id: form.after for form in forms})
    if ring is not None:
        raise UserError(f"{source}: tasks wait for each other: {describe_cycle(ring)}", hint="take one of them out of an `after`")


def draft_task(
    *,
    id: str,  # noqa: A002 - the task file's own word
    title: str,
    prompt: str,
    kind: str = "coding",
    checks: Sequence[str] = (),
    after: Sequence[str] = (),
    priority: int = 0,
) -> TaskDraft:
    """One task from the command line, held to the task file's rules; `after` is checked when it is queued."""
    table: dict[str, object] = {"id": id, "title": title, "prompt": prompt, "kind": kind, "priority": priority}
    return _draft({}, table | {"checks": list(checks), "after": list(after)}, "the task", Path())


async def resolve_drafts(drafts: Sequence[TaskDraft], *, repo: Path | None, sandbox: Literal["bubblewrap", "none"]) -> list[TaskSpec]:
    """Asks git for each (repository, base) once. `repo` stands in where the file names none; UserError when there is neither, or git refuses."""
    from workspaces.errors import WorkspaceError
    from workspaces.hub import resolve_base

    bases: dict[tuple[Path, str | None], Base] = {}
    specs: list[TaskSpec] = []
    for draft in drafts:
        where, form = draft.repo or repo, draft.form
        if where is None:
            raise UserError(f"task `{form.id}` names no repository", hint="give --repo DIR, or `repo` in the task file")
        if (where, form.base) not in bases:
            try:
                bases[where, form.base] = await resolve_base(where, form.base)
            except WorkspaceError as error:
                raise UserError(f"task `{form.id}`: {error}", hint=error.hint) from error
        specs.append(_spec(form, bases[where, form.base], sandbox))
    return specs


def _load(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", hint="give the path of a task file (TOML)") from error
    if len(data) > _FILE_LIMIT_BYTES:
        raise UserError(f"{path} is too large for a task file", hint=f"at most {_FILE_LIMIT_BYTES // 1024**2} MiB")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8", hint="save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is no TOML: {error}", hint="tables are written [defaults] and [[task]], texts in quotes") from error
    except RecursionError as error:
        raise UserError(f"{path} is nested too deeply", hint="tables are written [defaults] and [[task]]") from error


def _defaults(document: Mapping[str, object], path: Path) -> Mapping[str, object]:
    from orchestrator.taskform import SharedForm, did_you_mean, filled

    for key in document:
        if key not in ("defaults", "task"):
            hint = did_you_mean(key, ("defaults", "task")) or "a task file holds [defaults] and [[task]] tables"
            raise UserError(f"{path}: unknown key `{key}`", hint=hint)
    table = document.get("defaults", {})
    if not isinstance(table, dict):
        raise UserError(f"{path}: `defaults` is no table", hint="write [defaults] on a line of its own")
    defaults = cast("dict[str, object]", table)
    filled(SharedForm, defaults, f"{path}: [defaults]")
    return defaults


def _tables(document: Mapping[str, object], path: Path) -> list[Mapping[str, object]]:
    found = document.get("task", [])
    tables = cast("list[object]", found) if isinstance(found, list) else [None]
    if not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{path}: `task` is no list of tables", hint="write [[task]], in double brackets, before each task")
    if not tables:
        raise UserError(f"{path} holds no task", hint="write [[task]] and its `id` and `prompt`")
    return cast("list[Mapping[str, object]]", tables)


def _draft(defaults: Mapping[str, object], table: Mapping[str, object], where: str, folder: Path) -> TaskDraft:
    """The task with the defaults below it; their `limits` are joined key by key."""
    from orchestrator.taskform import TaskForm, filled

    if isinstance(name := table.get("id"), str):
        where = f"{where} (`{storable_text(name[:64])}`)"
    if "limits" in table and "limits" in defaults and isinstance(table["limits"], dict):
        table = {**table, "limits": {**cast("dict[str, object]", defaults["limits"]), **cast("dict[str, object]", table["limits"])}}
    form = filled(TaskForm, {**defaults, **table}, where)
    _expect_sound(form, where)
    return TaskDraft(form=form, repo=_folder(form.repo, folder, where) if form.repo is not None else None)


def _expect_sound(form: TaskForm, where: str) -> None:
    problem = id_problem(form.id)
    if problem is not None:
        raise UserError(f"{where}: `id` cannot be {form.id!r}", hint=problem)
    if not form.prompt.strip():
        raise UserError(f"{where}: `prompt` is blank", hint="say what the agent is to do")
    texts = {"prompt": form.prompt, "title": form.title, "repo": form.repo or "", "base": form.base or "", "checks": "".join(form.checks)}
    for key, text in texts.items():
        if storable_text(text) != text:
            raise UserError(f"{where}: `{key}` holds a NUL or a lone surrogate, which is no text", hint="remove the character")


def _folder(written: str, start: Path, where: str) -> Path:
    try:
        return (start / Path(written).expanduser()).absolute()
    except RuntimeError as error:
        raise UserError(f"{where}: `repo` {written!r} names the home of a user who is not known", hint="write the whole path") from error


def _spec(form: TaskForm, base: Base, sandbox: Literal["bubblewrap", "none"]) -> TaskSpec:
    return TaskSpec(
        id=form.id,
        title=form.title,
        kind=form.kind,
        prompt=form.prompt,
        repo=str(base.repo),
        base_commit=base.commit,
        target_branch=base.branch,
        checks=tuple(form.checks),
        after=tuple(dict.fromkeys(form.after)),
        priority=form.priority,
        attempts=form.attempts,
        limits=Limits(steps=form.limits.steps, tokens=form.limits.tokens, seconds=form.limits.seconds),
        agent=form.agent,
        sandbox=sandbox,
    )
