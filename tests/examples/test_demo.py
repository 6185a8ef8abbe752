"""The demo's content: its repository, its tasks and their scripts."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.serving.sim.script import load_scripts
from orchestrator.taskfile import parse_task_file

from .playing import DEMO, FAILS_ON_PURPOSE, TASKS, Place, Played, git, play_all, script_of

pytestmark = pytest.mark.slow

GOOD = [task for task in TASKS if task != FAILS_ON_PURPOSE]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "repo"
    shutil.copytree(DEMO / "repo", path, ignore=shutil.ignore_patterns("__pycache__"))
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "-m", "base")
    return path


@pytest.fixture(scope="module")
def played(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return asyncio.run(play_all(repo, tmp_path_factory.mktemp("played")))


def test_there_are_32_tasks_of_three_kinds_and_a_script_for_each() -> None:
    assert Counter(task["kind"] for task in TASKS.values()) == {"coding": 16, "document": 8, "accounting": 8}
    assert {path.stem for path in (DEMO / "scripts").glob("*.toml")} == set(TASKS)


def test_the_task_that_fails_on_purpose_says_so() -> None:
    task = TASKS[FAILS_ON_PURPOSE]
    assert "ON PURPOSE" in task["title"]
    assert task["attempts"] == 1


@pytest.mark.parametrize("task", TASKS)
def test_check_fails_on_the_base_commit(task: str, played: dict[str, Played]) -> None:
    assert played[task].before
    assert 0 not in played[task].before


@pytest.mark.parametrize("task", TASKS)
def test_script_fits_what_its_tools_say(task: str, played: dict[str, Played]) -> None:
    assert played[task].misfits == []


@pytest.mark.parametrize("task", GOOD)
def test_script_solves_its_task(task: str, played: dict[str, Played]) -> None:
    assert set(played[task].after) == {0}
    assert played[task].accepted == [True]
    assert played[task].files


def test_the_task_that_fails_on_purpose_is_refused_until_it_gives_up(played: dict[str, Played]) -> None:
    assert played[FAILS_ON_PURPOSE].accepted == [False, False, False]
    assert 0 not in played[FAILS_ON_PURPOSE].after


def test_scripts_have_four_to_eight_steps_and_end_with_a_submit() -> None:
    for task in TASKS:
        steps = script_of(task)
        assert 4 <= len(steps) <= 8, task
        assert steps[-1]["call"][-1]["tool"] == "submit", task


def test_several_scripts_go_wrong_and_recover(played: dict[str, Played]) -> None:
    assert len([task for task in GOOD if played[task].slips]) >= 6


def test_no_two_tasks_touch_the_same_file(played: dict[str, Played]) -> None:
    touched = Counter(file for one in played.values() for file in one.files)
    assert [file for file, count in touched.items() if count > 1] == []


def test_no_byte_code_is_left_that_could_be_stale(played: dict[str, Played]) -> None:
    assert [path for one in played.values() for path in one.tree.rglob("*.pyc")] == []


async def test_all_good_diffs_land_one_after_the_other(repo: Path, played: dict[str, Played], tmp_path: Path) -> None:
    merged = tmp_path / "merged"
    git(repo, "clone", "--quiet", ".", str(merged))
    for task in GOOD:
        git(merged, "apply", "--index", stdin=played[task].diff)
    place = Place(merged)
    ended = {task: [code for code, _ in await place.checks(task)] for task in GOOD}
    assert {task: codes for task, codes in ended.items() if set(codes) != {0}} == {}


def test_the_template_for_users_is_a_valid_task_file() -> None:
    drafts = parse_task_file(DEMO.parent / "tasks.toml")
    assert [draft.form.kind for draft in drafts] == ["coding", "document", "accounting"]


def test_station_and_simulator_read_the_demos_files() -> None:
    assert {draft.form.id for draft in parse_task_file(DEMO / "tasks.toml")} == set(load_scripts(DEMO / "scripts"))
