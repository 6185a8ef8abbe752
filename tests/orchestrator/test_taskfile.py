from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.errors import UserError
from orchestrator.task import Limits, TaskSpec
from orchestrator.taskfile import TaskDraft, draft_task, parse_task_file, resolve_drafts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tasks.toml"


def task(*lines: str, id: str = "a", prompt: str = "p") -> str:  # noqa: A002 - the file's own word
    return "\n".join(["[[task]]", f'id = "{id}"', f'prompt = "{prompt}"', *lines, ""])


def test_a_task_may_say_everything(file: Path) -> None:
    file.write_text(
        """
        [defaults]
        kind = "document"
        repo = "repos/one"
        checks = "python3 -m unittest"
        limits = { steps = 10, seconds = 60 }

        [[task]]
        id = "first"
        prompt = '''

          Fix the rounding.
          It rounds half up.'''

        [[task]]
        id = "second_2.b-C"
        title = "  The other one "
        prompt = "p"
        kind = "accounting"
        repo = "/elsewhere"
        base = "release"
        checks = ["make", "make check"]
        after = "first"
        priority = -3
        attempts = 1
        limits = { tokens = 5, seconds = 1.5 }
        best_of = 1
        agent = "builtin"
        """
    )
    drafts = parse_task_file(file)
    first, second = (draft.form for draft in drafts)
    assert (first.id, first.title, first.kind, first.base) == ("first", "Fix the rounding.", "document", None)
    assert [draft.repo for draft in drafts] == [file.parent / "repos/one", Path("/elsewhere")]
    assert (first.checks, first.after, first.priority, first.attempts) == (["python3 -m unittest"], [], 0, 2)
    assert (first.limits.steps, first.limits.tokens, first.limits.seconds) == (10, Limits().tokens, 60)
    assert (second.id, second.title, second.kind, second.base) == ("second_2.b-C", "The other one", "accounting", "release")
    assert (second.checks, second.after, second.priority, second.attempts) == (["make", "make check"], ["first"], -3, 1)
    assert (second.limits.steps, second.limits.tokens, second.limits.seconds) == (10, 5, 1.5)
    assert second.agent == "builtin"


BAD = {
    "unknown key": (task('titel = "y"'), "task 1 (`a`): unknown key `titel`", "did you mean `title`?"),
    "unknown key below": (task("limits = { stpes = 3 }"), "unknown key `limits.stpes`", "did you mean `steps`?"),
    "unknown key in defaults": ('[defaults]\nchekcs = "x"\n' + task(), "[defaults]: unknown key `chekcs`", "did you mean `checks`?"),
    "unknown table": ("[default]\n" + task(), "unknown key `default`", "did you mean `defaults`?"),
    "an unknown key before a wrong value": (task('priority = "x"', "zzz = 1"), "unknown key `zzz`", "known keys"),
    "duplicate id": (task() + task(id="b") + task(), "tasks 1 and 3 have the same id `a`", "an id of its own"),
    "duplicate but for case": (task() + task(id="A"), "tasks 1 and 2 have the same id `A`", "an id of its own"),
    "cycle": (
        task('after = ["b"]') + task('after = ["c"]', id="b") + task('after = ["a"]', id="c"),
        "wait for each other: a after b after c after a",
        "take one of them out",
    ),
    "self": (task('after = ["a"]'), "a after a", "take one of them out"),
    "unknown after": (task('after = ["bb"]') + task(id="b"), "task `a`: `after` names `bb`", "did you mean `b`?"),
    "broken": ("[[task]\n", "no TOML: Expected ']]' at the end of an array declaration (at line 1, column 7)", "[[task]]"),
    "single brackets": ('[task]\nid = "a"\n', "`task` is no list of tables", "double brackets"),
    "no task": ("[defaults]\n", "holds no task", "[[task]]"),
    "empty": ("", "holds no task", "[[task]]"),
    "missing id": (task() + '[[task]]\nprompt = "p"\n', "task 2 has no `id`", "needs an `id`"),
    "missing prompt": ('[[task]]\nid = "a"\n', "task 1 (`a`) has no `prompt`", "needs an `id`"),
    "blank prompt": (task(prompt=" \\n "), "`prompt` is blank", "what the agent is to do"),
    "bad kind": (task('kind = "codign"'), "`kind` cannot be 'codign'", "did you mean `coding`?"),
    "number as text": (task('priority = "3"'), "`priority` should be a valid integer, not '3'", "correct"),
    "text as number": ('[[task]]\nid = 4\nprompt = "p"\n', "task 1: `id` should be a valid string, not 4", "correct"),
    "no attempts": (task("attempts = 0"), "`attempts` should be greater than or equal to 1, not 0", "correct"),
    "endless": (task("limits = { seconds = inf }"), "`limits.seconds` should be a finite number", "correct"),
    "limits no table": (task("limits = 3"), "`limits` should be a table, not 3", "limits = {"),
    "a check that is none": (task('checks = ["make", 3]'), "`checks[2]` should be a valid string, not 3", "correct"),
    "best of": (task("best_of = 3"), "`best_of` is not available yet", "leave it out"),
    "best of in defaults": ("[defaults]\nbest_of = 2\n" + task(), "[defaults]: `best_of` is not available yet", "leave it out"),
    "agent": (task('agent = "claude"'), "other agents than the builtin one are not available yet", "leave `agent` out"),
    "NUL": (task(prompt="a\\u0000b"), "`prompt` holds a NUL", "remove"),
    "nested": ("a = " + "[" * 100_000, "nested too deeply", "[[task]]"),
    "unknown home": (task('repo = "~nobody-by-this-name/x"'), "`repo` '~nobody-by-this-name/x' names the home", "whole path"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_error_names_the_place_and_hints(file: Path, case: str) -> None:
    text, message, hint = BAD[case]
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        parse_task_file(file)
    assert str(file) in str(refused.value)
    assert message in str(refused.value)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "../a", "a..b", ".a", "-a", "a.", "a.lock", "ä", "a" * 65, "a\\n", "a~b", "a:b", "@{", "a\\\\b"]
)
def test_ids_that_could_not_name_a_folder_or_a_branch_are_refused(file: Path, name: str) -> None:
    file.write_text(task(id=name))
    with pytest.raises(UserError, match="`id`"):
        parse_task_file(file)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "_", "9", "a" * 64, "lock", "a.locked"])
def test_ids_that_are_allowed_name_a_branch_that_git_takes(file: Path, name: str) -> None:
    file.write_text(task(id=name))
    assert parse_task_file(file)[0].form.id == name
    assert subprocess.run(["git", "check-ref-format", f"refs/heads/stationmaster/{name}-1"]).returncode == 0
    assert subprocess.run(["git", "check-ref-format", f"refs/stationmaster/snapshots/{name}/1"]).returncode == 0


def test_tasks_may_come_after_those_that_are_queued_already(file: Path) -> None:
    file.write_text(task('after = ["old"]'))
    assert parse_task_file(file, queued={"old"})[0].form.after == ["old"]


def test_brackets_and_control_characters_are_ordinary_text(file: Path) -> None:
    file.write_text(task('title = "[/bold] \\u001b[31m x[/]"', prompt="[/usr/bin]\\n[link=http://e]a[/link]"))
    draft = parse_task_file(file)[0].form
    assert (draft.title, draft.prompt) == ("[/bold] \x1b[31m x[/]", "[/usr/bin]\n[link=http://e]a[/link]")


def test_a_title_made_from_a_prompt_is_short(file: Path) -> None:
    file.write_text(task(prompt="x" * 500))
    assert parse_task_file(file)[0].form.title == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("data", "message"), [(None, "cannot read"), (b'x = "\xff"', "line 1: not UTF-8"), (b"\xef\xbb\xbf[[task]]\n", "has no `id`")]
)
def test_a_file_that_cannot_be_read_is_one_error(file: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UserError, match=message):
        parse_task_file(file)


def test_a_folder_is_no_task_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        parse_task_file(tmp_path)


def test_a_task_from_the_command_line_is_held_to_the_same_rules() -> None:
    draft = draft_task(id="a", title="T", prompt="P", checks=["make"], after=["queued-already"], priority=2)
    assert (draft.form.checks, draft.form.after, draft.form.priority, draft.repo) == (["make"], ["queued-already"], 2, None)
    for wrong in ({"id": "a/b"}, {"prompt": ""}, {"prompt": "a\udcff"}, {"kind": "poetry"}, {"title": "\x00"}, {"checks": ["\udcff"]}):
        with pytest.raises(UserError, match="the task"):
            draft_task(**{"id": "a", "title": "T", "prompt": "P", **wrong})  # type: ignore[arg-type]


async def test_a_task_without_a_repository_is_refused() -> None:
    with pytest.raises(UserError, match="task `a` names no repository") as refused:
        await resolve_drafts([draft_task(id="a", title="T", prompt="P")], repo=None, sandbox="none")
    assert "--repo" in refused.value.hint


def git(repo: Path, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *identity, "-C", str(repo), *words], check=True, capture_output=True, text=True).stdout.strip()


def made_repository(path: Path) -> str:
    path.mkdir()
    git(path, "init", "-q", "-b", "trunk")
    git(path, "commit", "-q", "--allow-empty", "-m", "one")
    git(path, "branch", "release")
    git(path, "commit", "-q", "--allow-empty", "-m", "two")
    return git(path, "rev-parse", "HEAD")


def two_drafts(file: Path) -> list[TaskDraft]:
    file.write_text(task() + task('repo = "repo"', 'base = "release"', id="b"))
    return parse_task_file(file)


def one_draft(file: Path) -> TaskDraft:
    file.write_text(task(prompt="Do it.\\nAll of it."))
    return parse_task_file(file)[0]


async def test_drafts_are_resolved_to_commits_and_branches(tmp_path: Path, file: Path) -> None:
    head = made_repository(tmp_path / "repo")
    specs = await resolve_drafts(two_drafts(file), repo=tmp_path / "repo", sandbox="none")
    assert [(spec.base_commit, spec.target_branch, spec.repo) for spec in specs] == [
        (head, "trunk", str(tmp_path / "repo")),
        (git(tmp_path / "repo", "rev-parse", "release"), "release", str(tmp_path / "repo")),
    ]
    assert {spec.sandbox for spec in specs} == {"none"}


async def test_a_task_that_says_the_least_has_the_defaults_of_all_tasks(tmp_path: Path, file: Path) -> None:
    head = made_repository(tmp_path / "repo")
    (spec,) = await resolve_drafts([one_draft(file)], repo=tmp_path / "repo", sandbox="bubblewrap")
    given = {"id": "a", "title": "Do it.", "prompt": "Do it.\nAll of it.", "repo": str(tmp_path / "repo")}
    assert spec == TaskSpec(**given, base_commit=head, target_branch="trunk")


async def test_a_repository_that_git_refuses_is_one_error_that_names_the_task(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="task `a`: "):
        await resolve_drafts([draft_task(id="a", title="T", prompt="P")], repo=tmp_path / "missing", sandbox="none")
