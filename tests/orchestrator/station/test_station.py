"""Whole stations: real processes, real git, the simulated engine as their child."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.events import ModelAsked, StepCompleted, ToolStarted
from orchestrator.errors import StationDown, UserError
from orchestrator.events import AttemptEnded, AttemptResumed, EngineDown, EngineUp
from orchestrator.launch import station_running
from orchestrator.reader import open_reader

pytestmark = pytest.mark.slow


def at(yard: Any, commit: str, path: str) -> str:
    hub = next(yard.home.hubs.glob("*.git"), None) or next(p for p in yard.home.hubs.iterdir() if p.is_dir())
    return yard.git("show", f"{commit}:{path}", git_dir=hub)


def test_a_task_goes_from_the_queue_to_a_verified_snapshot(yard: Any) -> None:
    yard.script("task", yard.call("write", path="b.txt", content="two\n"), yard.submit("wrote b"))
    yard.up()
    yard.client.add([yard.spec("task", checks=("grep -q two b.txt", "test -f a.txt"))])
    row = yard.wait_state("task", "verified")
    assert (row.attempt, row.files_changed, row.insertions, row.failure) == (1, 1, 1, None)
    assert [check.exit_code for check in row.checks] == [0, 0]
    assert row.snapshot_commit is not None
    assert at(yard, row.snapshot_commit, "b.txt") == "two"
    assert yard.git("status", "--porcelain") == ""
    totals = yard.client.snapshot().totals
    assert totals.output_tokens == totals.server_output_tokens == row.output_tokens
    assert totals.unattributed_tokens == 0
    assert totals.max_parallel == 1
    diff = yard.client.diff("task")
    assert [file.path for file in diff.files] == ["b.txt"]
    assert (diff.target, diff.target_moved, diff.conflicts) == ("main", False, [])


def test_failed_checks_go_back_to_the_agent_who_mends_its_work(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("write", path="b.txt", content="wrong\n"),
        yard.submit("first"),
        {"expect": "grep -q right", **yard.call("write", path="b.txt", content="right\n")},
        yard.submit("second"),
    )
    yard.up()
    yard.client.add([yard.spec("task", checks=("grep -q right b.txt",))])
    row = yard.wait_state("task", "verified", "failed", "stuck")
    assert (row.state, row.attempt, row.step) == ("verified", 1, 4)


def test_checks_see_the_recorded_tree_and_change_nothing(yard: Any) -> None:
    yard.script("task", yard.call("write", path="b.txt", content="two\n"), yard.submit())
    yard.up()
    detached = '! git symbolic-ref -q HEAD && test -z "$(git status --porcelain)"'
    yard.client.add([yard.spec("task", checks=(detached, "rm a.txt; echo x > made", "test -f made && test ! -e a.txt"))])
    row = yard.wait_state("task", "verified", "failed", "stuck")
    assert row.state == "verified", row.failure
    assert sorted(path.name for path in Path(row.workspace).iterdir()) == [".git", "a.txt", "b.txt"]
    assert at(yard, row.snapshot_commit, "a.txt") == "one"
    assert list(yard.home.checks.iterdir()) == []


def test_work_that_needs_a_file_which_git_ignores_is_not_verified(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("write", path=".gitignore", content="secret\n"),
        yard.call("write", path="secret", content="x\n"),
        yard.submit("first"),
        {"expect": "fresh checkout", **yard.call("write", path=".gitignore", content="")},
        yard.submit("second"),
    )
    yard.up()
    yard.client.add([yard.spec("task", checks=("test -f secret",))])
    row = yard.wait_state("task", "verified", "failed", "stuck")
    assert (row.state, row.step) == ("verified", 5)


def test_a_cancelled_check_leaves_neither_processes_nor_its_checkout(yard: Any) -> None:
    yard.script("task", yard.submit())
    pid = yard.up()
    yard.client.add([yard.spec("task", checks=("sleep 300",))])
    yard.wait_state("task", "claimed-done")
    sleeping = sleepers(pid, 1)
    assert len(list(yard.home.checks.glob("task/1/a.txt"))) == 1
    yard.client.cancel("task")
    _, alive = psutil.wait_procs(sleeping, timeout=5)
    assert alive == []
    yard.down()
    assert list(yard.home.checks.iterdir()) == []


def test_checks_that_a_killed_station_left_running_end_and_run_again(yard: Any) -> None:
    yard.script("task", yard.submit())
    pid = yard.up()
    yard.client.add([yard.spec("task", checks=(f"test -e {yard.repo}/go || exec sleep 300",))])
    yard.wait_state("task", "claimed-done")
    sleeping = sleepers(pid, 1)
    yard.kill()
    (yard.home.checks / "stale" / "1").mkdir(parents=True)
    (yard.repo / "go").write_text("")
    yard.up_again()
    _, alive = psutil.wait_procs(sleeping, timeout=5)
    assert alive == []
    assert yard.wait_state("task", "verified", "failed").state == "verified"
    assert list(yard.home.checks.iterdir()) == []


def test_work_that_never_passes_fails_after_its_attempts(yard: Any) -> None:
    yard.script("task", yard.submit("one"), yard.submit("two"), yard.submit("three"))
    yard.up()
    yard.client.add([yard.spec("task", attempts=1, checks=("echo no luck; false",))])
    row = yard.wait_state("task", "failed")
    assert row.failure is not None
    assert (row.failure.kind, row.step) == ("checks", 3)
    assert "no luck" in yard.client.task("task").checks[0].output


def test_without_a_script_the_task_ends_stuck_and_nothing_is_claimed(yard: Any) -> None:
    yard.up()
    yard.client.add([yard.spec("unknown", attempts=1)])
    row = yard.wait_state("unknown", "verified", "stuck", "failed")
    assert row.state == "stuck"


def test_a_killed_station_goes_on_in_the_same_attempt_and_workspace(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("write", path="b.txt", content="two\n"),
        {"text": "thinking", "filler_tokens": 60, "call": [{"tool": "run", "arguments": {"command": "cat b.txt"}}]},
        {"expect": "two", **yard.call("write", path="c.txt", content="three\n")},
        yard.submit(),
    )
    pid = yard.up("slow")
    yard.client.add([yard.spec("task", checks=("cat b.txt c.txt",))])
    yard.wait_for(lambda event: isinstance(event.fact, StepCompleted), task="task")
    before = yard.row("task")
    children = psutil.Process(pid).children()
    yard.kill()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    with pytest.raises(StationDown):
        yard.client.status()
    assert open_reader(yard.home).task("task").row.state == "running"
    yard.up_again()
    row = yard.wait_state("task", "verified", "failed", "stuck")
    assert (row.state, row.attempt, row.workspace) == ("verified", 1, before.workspace)
    facts = [event.fact for event in yard.client.events(task="task")]
    assert [fact.step for fact in facts if isinstance(fact, AttemptResumed)] == [1]
    assert [fact.step for fact in facts if isinstance(fact, StepCompleted)] == [1, 2, 3, 4]
    assert sum(isinstance(fact, AttemptEnded) for fact in facts) == 1


def test_a_planned_stop_leaves_nothing_running_and_the_work_goes_on_later(yard: Any) -> None:
    yard.script("task", yard.call("run", command="sleep 300 & echo $! > pid; sleep 300"), yard.submit())
    yard.script("other", yard.call("write", path="b.txt", content="x"), {"text": "", "filler_tokens": 100_000}, yard.submit())
    pid = yard.up("slow")
    yard.client.add([yard.spec("task"), yard.spec("other")])
    yard.wait_for(lambda event: isinstance(event.fact, ToolStarted) and event.fact.tool == "run", task="task")
    yard.wait_for(lambda event: isinstance(event.fact, StepCompleted), task="other")
    children = psutil.Process(pid).children(recursive=True)
    yard.down()
    assert station_running(yard.home) is None
    _, alive = psutil.wait_procs(children, timeout=3)
    assert alive == []
    offline = open_reader(yard.home)
    assert {row.id: row.state for row in offline.tasks()} == {"task": "interrupted", "other": "interrupted"}
    assert [file.path for file in offline.diff("other").files] == ["b.txt"]
    yard.up_again()
    yard.wait_for(lambda event: isinstance(event.fact, AttemptResumed), task="other")
    detail = yard.client.task("other")
    assert (detail.row.attempt, detail.attempts[0].resumptions) == (1, 0)


def test_processes_that_a_killed_station_left_behind_end_at_the_next_start(yard: Any) -> None:
    yard.script("task", yard.call("run", command="setsid sleep 300 & sleep 300"), yard.submit())
    pid = yard.up()
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, ToolStarted), task="task")
    left = sleepers(pid, 2)
    yard.kill()
    yard.up_again()
    _, alive = psutil.wait_procs(left, timeout=5)
    assert alive == []


def sleepers(pid: int, count: int) -> list[psutil.Process]:
    """The `sleep` commands below a station, once there are so many (`ToolStarted` comes just before they do)."""
    while True:
        found = [child for child in psutil.Process(pid).children(recursive=True) if name_of(child) == "sleep"]
        if len(found) >= count:
            return found


def name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:  # one of the station's gits, which has just ended
        return ""


def test_a_cancelled_task_stops_at_once_with_its_processes(yard: Any) -> None:
    yard.script("task", yard.call("run", command="sleep 300 & sleep 300"), yard.submit())
    pid = yard.up()
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, ToolStarted), task="task")
    sleeping = sleepers(pid, 2)
    assert yard.client.cancel("task").state == "cancelled"
    _, alive = psutil.wait_procs(sleeping, timeout=5)
    assert alive == []
    assert yard.row("task").state == "cancelled"


def test_what_a_person_says_reaches_the_agent_after_its_step(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("run", command="until [ -e go ]; do sleep 0.05; done"),
        {"text": "", "filler_tokens": 5, **yard.call("read", path="a.txt")},
        yard.submit(),
    )
    yard.up()
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, ToolStarted), task="task")
    row = yard.client.say("task", "Mind the gap.")
    assert row.workspace is not None
    (Path(row.workspace) / "go").write_text("")
    yard.wait_state("task", "verified")
    log = [bytes(message).decode() for message in yard.client.log("task").messages]
    heard = next(number for number, message in enumerate(log) if "Mind the gap." in message)
    assert '"role":"user"' in log[heard]
    assert '"role":"tool"' in log[heard - 1]


def test_what_a_person_says_in_the_first_step_outlives_a_crash_in_it(yard: Any) -> None:
    yard.script("task", {"text": "", "filler_tokens": 60, **yard.call("read", path="a.txt")}, yard.submit())
    yard.up("slow")
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, ModelAsked), task="task")
    yard.client.say("task", "Mind the gap.")
    yard.kill()
    yard.up_again()
    yard.wait_state("task", "verified")
    log = [bytes(message).decode() for message in yard.client.log("task").messages]
    assert [number for number, message in enumerate(log) if "Mind the gap." in message] == [4]
    assert '"role":"tool"' in log[3]


def test_a_comment_that_the_first_steps_crash_kept_from_being_heard_is_heard_after_it(yard: Any) -> None:
    yard.script("task", {"text": "", "filler_tokens": 60, **yard.call("read", path="a.txt")}, yard.submit())
    yard.up("slow")
    yard.client.add([yard.spec("task")])
    yard.wait_state("task", "verified")
    seq = yard.seq()
    yard.client.reject("task", "Write y instead.")
    yard.wait_for(lambda event: isinstance(event.fact, ModelAsked), task="task", after=seq)
    yard.kill()
    yard.up_again()
    yard.wait_state("task", "verified", after=seq)
    log = [bytes(message).decode() for message in yard.client.log("task").messages]
    assert [number for number, message in enumerate(log) if "Write y instead." in message] == [1, 4]


def test_a_rejected_task_begins_anew_with_the_comment(yard: Any) -> None:
    yard.script("task", yard.call("write", path="b.txt", content="x\n"), yard.submit("wrote x"))
    yard.up()
    yard.client.add([yard.spec("task")])
    first = yard.wait_state("task", "verified")
    seq = yard.seq()
    yard.client.reject("task", "Write y instead.")
    second = yard.wait_state("task", "verified", after=seq)
    assert (second.attempt, first.workspace != second.workspace, first.branch != second.branch) == (2, True, True)
    opening = b"".join(bytes(message) for message in yard.client.log("task").messages[:2]).decode()
    assert "Write y instead." in opening
    assert "wrote x" in opening


def test_approved_work_lands_and_the_users_own_files_stay(yard: Any) -> None:
    yard.script("task", yard.call("write", path="b.txt", content="x\n"), yard.submit())
    yard.script("clash", yard.call("write", path="a.txt", content="agent\n"), yard.submit())
    yard.up()
    yard.client.add([yard.spec("task"), yard.spec("clash")])
    yard.wait_all(["task", "clash"], "verified")
    with pytest.raises(UserError, match="not approved"):
        yard.client.merge("task")
    (yard.repo / "mine.txt").write_text("mine\n")
    yard.client.approve("task")
    landed = yard.client.merge("task")
    assert (landed.state, landed.commit) == ("merged", yard.git("rev-parse", "main"))
    assert (yard.repo / "b.txt").read_text() == "x\n"
    assert yard.git("status", "--porcelain") == "?? mine.txt"
    (yard.repo / "a.txt").write_text("user\n")
    yard.git("commit", "-qam", "mine")
    assert yard.client.diff("clash").conflicts == ["a.txt"]
    yard.client.approve("clash")
    refused = yard.client.merge("clash")
    assert (refused.state, refused.conflicts) == ("conflicted", ["a.txt"])
    assert yard.git("status", "--porcelain") == "?? mine.txt"


def test_a_dirty_checkout_refuses_the_merge_and_the_task_stays_in_review(yard: Any) -> None:
    yard.script("task", yard.call("write", path="a.txt", content="x\n"), yard.submit())
    yard.up()
    yard.client.add([yard.spec("task")])
    yard.wait_state("task", "verified")
    (yard.repo / "a.txt").write_text("unfinished\n")
    yard.client.approve("task")
    refused = yard.client.merge("task")
    assert refused.state == "in-review"
    assert refused.message
    assert (yard.repo / "a.txt").read_text() == "unfinished\n"


def test_an_engine_that_dies_comes_back_and_no_attempt_is_lost(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("read", path="a.txt"),
        {"text": "", "filler_tokens": 100, **yard.call("write", path="b.txt", content="x")},
        yard.submit(),
    )
    pid = yard.up("slow")
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, StepCompleted), task="task")
    engine = next(child for child in psutil.Process(pid).children() if "orchestrator.serving.simulator" in child.cmdline())
    os.kill(engine.pid, signal.SIGKILL)
    yard.wait_for(lambda event: isinstance(event.fact, EngineDown))
    row = yard.wait_state("task", "verified", "failed", "stuck")
    assert (row.state, row.attempt) == ("verified", 1)
    assert sum(isinstance(event.fact, EngineUp) for event in yard.client.events()) == 2


def test_agents_follow_an_engine_whose_port_was_taken_to_its_new_one(yard: Any) -> None:
    yard.script(
        "task",
        yard.call("read", path="a.txt"),
        {"text": "", "filler_tokens": 100, **yard.call("write", path="b.txt", content="x")},
        yard.submit(),
    )
    pid = yard.up("slow")
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, StepCompleted), task="task")
    engine = next(child for child in psutil.Process(pid).children() if "orchestrator.serving.simulator" in child.cmdline())
    former = yard.client.status().engine.url
    os.kill(engine.pid, signal.SIGKILL)
    psutil.wait_procs([engine], timeout=5)
    with socket.create_server(("127.0.0.1", int(former.rpartition(":")[2].removesuffix("/v1")))):
        yard.wait_for(lambda event: isinstance(event.fact, EngineUp) and event.fact.url != former)
        assert yard.wait_state("task", "verified", "failed", "stuck").state == "verified"
    totals = yard.client.snapshot().totals
    assert totals.unattributed_tokens >= 0
    assert totals.server_output_tokens >= totals.output_tokens


def test_no_more_agents_work_than_are_allowed(yard: Any) -> None:
    names = [f"task-{number}" for number in range(6)]
    for name in names:
        yard.script(name, yard.call("write", path="b.txt", content="x"), yard.submit())
    yard.up(agents=2)
    yard.client.add([yard.spec(name) for name in names])
    yard.wait_all(names, "verified")
    assert yard.client.snapshot().totals.max_parallel == 2


def test_a_fault_of_our_own_ends_one_attempt_with_its_traceback_and_nothing_else(yard: Any) -> None:
    yard.script("task", yard.submit())
    yard.home.ensure()
    yard.home.trajectory("task", 1).mkdir(parents=True)
    yard.up()
    yard.client.add([yard.spec("task", attempts=1)])
    row = yard.wait_state("task", "failed")
    assert row.failure is not None
    assert row.failure.kind == "bug"
    assert "IsADirectoryError" in row.failure.message
    assert yard.client.status().running


def test_a_task_runs_in_the_sandbox_and_sees_neither_home_nor_network(yard: Any) -> None:
    yard.script(
        "task", yard.call("run", command=f"ls {yard.home.path}/token {yard.repo}/a.txt; ls /proc/self/net/dev; cat b.txt"), yard.submit()
    )
    yard.up()
    yard.client.add([yard.spec("task", sandbox="bubblewrap", checks=(f"test ! -e {yard.home.path}/token",))])
    row = yard.wait_state("task", "verified", "failed", "stuck", "interrupted")
    assert row.state == "verified", row.failure
