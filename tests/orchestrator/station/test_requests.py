"""Requests that no client of ours sends."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.orchestrator.station.test_api import ask

BEYOND = ["-1", "9" * 19, "9" * 25, "9" * 30, "9" * 5_000, "1.5", "0x10", "\u0661", "", "NaN", "1e3", " 1"]


@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize("where", ["snapshot?after=", "events?after=", "tasks/known/log?attempt=", "tasks/known/log?step="])
def test_numbers_that_are_none_or_too_large_are_refused(idle: Any, where: str, number: str) -> None:
    status, said = ask(idle, f"GET /v1/{where}{quote(number)}", token=idle.home.read_token())
    assert status == 400
    assert "is no number" in said["error"]
    assert len(said["error"]) < 200


@pytest.mark.parametrize("where", ["snapshot?after=", "tasks/known/log?attempt=", "tasks/known/log?step="])
def test_the_largest_number_is_one(idle: Any, where: str) -> None:
    status, _ = ask(idle, f"GET /v1/{where}{2**63 - 1}", token=idle.home.read_token())
    assert status in {200, 422}


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../x"},
        {"id": "a/b"},
        {"id": ".hidden"},
        {"id": "-option"},
        {"id": ""},
        {"id": "x" * 65},
        {"id": "nul\0"},
        {"id": 7},
        {"title": None},
        {"title": "nul\0"},
        {"kind": "cooking"},
        {"prompt": ""},
        {"prompt": ["x"]},
        {"repo": "relative/path"},
        {"repo": ""},
        {"repo": "~/repo"},
        {"base_commit": "HEAD"},
        {"base_commit": "--help"},
        {"base_commit": "b" * 39},
        {"base_commit": "B" * 40},
        {"base_commit": 7},
        {"checks": "true"},
        {"checks": [1]},
        {"after": ["ghost"]},
        {"priority": 10**30},
        {"priority": "high"},
        {"attempts": 0},
        {"attempts": 10**9},
        {"limits": {"steps": 0}},
        {"limits": {"tokens": 2**63}},
        {"limits": {"seconds": -1}},
        {"limits": {"seconds": 1e300}},
        {"limits": []},
        {"agent": "other"},
        {"sandbox": "open"},
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_and_nothing_is_queued(idle: Any, change: dict[str, object]) -> None:
    sound = {"title": "t", "prompt": "p", "repo": str(idle.repo), "base_commit": "b" * 40, "target_branch": "main"}
    before = idle.client.snapshot()
    tasks = [{"id": "beside", **sound}, {"id": "odd", **sound, **change}]
    status, said = ask(idle, "POST /v1/tasks", token=idle.home.read_token(), body=json.dumps({"tasks": tasks}).encode())
    assert status in {400, 422}
    assert said["error"]
    assert idle.client.snapshot().seq == before.seq


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b'{"tasks": {}}',
        b'{"tasks": [7]}',
        b'{"tasks": [], "more": 1}',
        b"\xff\xfe",
        b'{"tasks": ' + b"[" * 100_000,
        b'{"tasks": [{"id": "x", "odd": ' + b"[" * 100_000,
        b'{"tasks": [{"id": "\xff"}]}',
        b'{"tasks": [{"id": "\\ud800"}]}',
    ],
    ids=range(10),
)
def test_a_body_that_is_no_list_of_tasks_is_refused(idle: Any, body: bytes) -> None:
    status, said = ask(idle, "POST /v1/tasks", token=idle.home.read_token(), body=body)
    assert status == 400
    assert "not understood" in said["error"]


@pytest.mark.parametrize("field", ["id", "title", "prompt", "repo", "base_commit", "target_branch"])
def test_a_spec_without_what_it_needs_is_refused_by_the_name_of_it(idle: Any, field: str) -> None:
    spec = {"id": "x", "title": "t", "prompt": "p", "repo": "/r", "base_commit": "b" * 40, "target_branch": None}
    del spec[field]
    status, said = ask(idle, "POST /v1/tasks", token=idle.home.read_token(), body=json.dumps({"tasks": [spec]}).encode())
    assert status == 400
    assert f"`{field}`" in said["error"]


@pytest.mark.parametrize("path", ["%00", "%ff", "..", "a%2Fb", "x" * 5_000])
def test_a_path_that_names_no_task_is_refused(idle: Any, path: str) -> None:
    status, said = ask(idle, f"GET /v1/tasks/{path}", token=idle.home.read_token())
    assert status in {404, 422}
    assert said["error"]
