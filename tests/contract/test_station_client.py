"""What the dashboard may rely on, of a station behind its client and of the fake alike: the same refusals, the same answers."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.messages import Assistant, Message, System, ToolCall, ToolResult, User
from orchestrator.client import StationClient
from orchestrator.errors import StationDown, UserError
from orchestrator.home import Home
from orchestrator.task import ENDED
from orchestrator.views import FileView, HunkView
from tests.orchestrator.station.conftest import Yard
from tests.tui.conftest import row
from tui.client import Station
from tui.fake import FakeStation, FakeTask

LIMIT_S = 30
READY = [f"ready-{name}" for name in ("approve", "merge", "conflict", "retry", "reject", "sent-back", "look", "cancel", "delta", "read")]
AT_WORK = ["at-work", "to-cancel"]
WAITING = ["waiting"]


def real(folder: Path) -> tuple[Station, Callable[[], None]]:
    """A station with the simulated engine, once every task is where its name says; how to end it."""
    yard = Yard(folder)
    for task in READY:
        path = "same.txt" if task in {"ready-merge", "ready-conflict"} else f"{task}.txt"
        yard.script(task, yard.call("write", path=path, content=f"by {task}\n"), yard.submit())
    for task in AT_WORK:
        yard.script(task, yard.call("run", command="exec sleep 600", timeout_s=600), yard.submit())
    try:
        yard.up(agents=len(READY))
        yard.client.add([*map(yard.spec, READY + AT_WORK), *(yard.spec(task, after=["at-work"]) for task in WAITING)])
        yard.wait_all(READY, "verified")
        yard.wait_all(AT_WORK, "running")
    except BaseException:
        yard.close()
        raise
    return yard.client, yard.close


def fake(_folder: Path) -> tuple[Station, Callable[[], None]]:
    station = FakeStation()
    for task in READY:
        conflicts = ["same.txt"] if task == "ready-conflict" else []
        station.put(FakeTask(row=row(task, "verified", step=2), messages=conversation(), files=[added(f"{task}.txt")], conflicts=conflicts))
    for task in AT_WORK:
        station.put(FakeTask(row=row(task, "running", step=1), messages=conversation()[:3]))
    for task in WAITING:
        station.put(FakeTask(row=row(task, "queued", after=["at-work"], waiting_for="task at-work (running)")))
    return station, lambda: None


def conversation() -> list[Message]:
    def reply(name: str) -> Assistant:
        return Assistant(text=f"I call {name}.", tool_calls=(ToolCall(id=name, name=name, arguments="{}"),), finish_reason="tool_calls")

    return [
        System(text="You are an agent."),
        User(text="Do it."),
        reply("write"),
        ToolResult(call_id="write", name="write", text="written", ok=True),
        reply("submit"),
    ]


def added(path: str) -> FileView:
    hunk = HunkView(id="1", header="@@ -0,0 +1 @@", lines=["+by"])
    return FileView(
        path=path, old_path=None, status="added", old_mode=None, new_mode="100644", binary=False, insertions=1, deletions=0, hunks=[hunk]
    )


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """A station that never answers ends the test, not the patience."""

    def over(*_: object) -> None:
        raise TimeoutError(f"the test took {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module", params=[fake, real], ids=["fake", "station"])
def station(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    made, end = request.param(tmp_path_factory.mktemp("contract"))
    yield made
    end()


def silent_fake(_folder: Path) -> Station:
    station = FakeStation()
    station.go_down()
    return station


def silent_real(folder: Path) -> Station:
    return StationClient(Home.at(folder))


def roles(messages: list[msgspec.Raw]) -> list[str]:
    return [msgspec.json.decode(raw)["role"] for raw in messages]


UNKNOWN: dict[str, Callable[[Station], object]] = {
    "task": lambda station: station.task("nobody"),
    "log": lambda station: station.log("nobody"),
    "diff": lambda station: station.diff("nobody"),
    "cancel": lambda station: station.cancel("nobody"),
    "retry": lambda station: station.retry("nobody", "again"),
    "approve": lambda station: station.approve("nobody"),
    "reject": lambda station: station.reject("nobody", "no"),
    "merge": lambda station: station.merge("nobody"),
    "say": lambda station: station.say("nobody", "hello"),
    "look": lambda station: station.look("nobody"),
}


@pytest.mark.parametrize("call", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_task_that_does_not_exist_is_refused_by_every_call(station: Station, call: Callable[[Station], object]) -> None:
    with pytest.raises(UserError, match=r"^there is no task nobody$") as refused:
        call(station)
    assert refused.value.hint == "`stationmaster list` shows them all"


REFUSED: dict[str, tuple[Callable[[Station], object], str, str]] = {
    "approve at work": (lambda s: s.approve("at-work"), "task at-work is running, not waiting for review", "it is not done yet"),
    "approve waiting": (lambda s: s.approve("waiting"), "task waiting is queued, not waiting for review", "it is not done yet"),
    "merge unapproved": (lambda s: s.merge("ready-read"), "task ready-read is not approved", "stationmaster approve ready-read"),
    "merge at work": (lambda s: s.merge("at-work"), "task at-work is running and cannot be merged", "it is not done yet"),
    "retry at work": (lambda s: s.retry("at-work", "faster"), "task at-work is running, it has not ended", "stationmaster cancel at-work"),
    "retry waiting": (lambda s: s.retry("waiting"), "task waiting is queued, it has not ended", "stationmaster cancel waiting"),
    "reject at work": (lambda s: s.reject("at-work"), "task at-work is running: nothing to reject", "it is not done yet"),
    "send back at work": (lambda s: s.reject("at-work", "no"), "task at-work is running: nothing to reject", "it is not done yet"),
    "say to nobody": (lambda s: s.say("ready-read", "hello"), "task ready-read is .*: no agent works on it", "--comment"),
    "say nothing": (lambda s: s.say("at-work", " \n"), "there is nothing to say", "a text"),
    "diff of nothing": (lambda s: s.diff("waiting"), "task waiting has no snapshot yet", "stationmaster show waiting"),
    "log of nothing": (lambda s: s.log("waiting"), "task waiting has no attempt yet", ""),
    "log of no attempt": (lambda s: s.log("ready-read", attempt=7), "task ready-read has no attempt 7", "the newest is 1"),
    "log of no step": (lambda s: s.log("ready-read", step=99), "attempt 1 of task ready-read has no step 99", ""),
}


@pytest.mark.parametrize(("call", "message", "hint"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_the_state_is_refused_and_changes_nothing(
    station: Station, call: Callable[[Station], object], message: str, hint: str
) -> None:
    before = {task: station.task(task).row.state for task in ("at-work", "waiting", "ready-read")}
    with pytest.raises(UserError, match=f"^{message}$") as refused:
        call(station)
    assert hint in refused.value.hint
    assert {task: station.task(task).row.state for task in before} == before


def test_approve_marks_what_was_verified_and_may_be_said_twice(station: Station) -> None:
    assert not station.task("ready-approve").row.approved
    for _ in range(2):
        approved = station.approve("ready-approve")
        assert (approved.state, approved.approved) == ("in-review", True)
    assert station.task("ready-approve").row.approved


def test_an_approved_task_is_merged_once_and_one_that_conflicts_is_not(station: Station) -> None:
    station.approve("ready-merge")
    landed = station.merge("ready-merge")
    assert (landed.task, landed.state, landed.target, landed.conflicts) == ("ready-merge", "merged", "main", [])
    assert landed.commit is not None
    assert landed.message == f"landed on main as {landed.commit[:12]}"
    assert station.task("ready-merge").row.merged_commit == landed.commit
    for call, message in (
        (station.merge, "is merged already"),
        (station.cancel, "nothing to cancel"),
        (station.retry, "nothing to retry"),
        (station.reject, "nothing to reject"),
        (station.approve, "not waiting for review"),
    ):
        with pytest.raises(UserError, match=message):
            call("ready-merge")

    station.approve("ready-conflict")
    clash = station.merge("ready-conflict")
    assert (clash.state, clash.commit, clash.conflicts) == ("conflicted", None, ["same.txt"])
    assert clash.message == "conflicts with main: nothing was changed"
    after = station.task("ready-conflict").row
    assert (after.state, after.approved) == ("conflicted", True)
    assert after.failure is not None
    assert (after.failure.kind, after.failure.message) == ("conflict", "conflicts")
    assert station.merge("ready-conflict").state == "conflicted", "it may be tried again"


def test_retry_takes_the_approval_away_and_keeps_the_comment(station: Station) -> None:
    station.approve("ready-retry")
    again = station.retry("ready-retry", "use decimals")
    assert again.state not in ENDED
    assert not again.approved
    assert station.task("ready-retry").comments == ["use decimals"]


def test_reject_without_a_comment_is_the_end_and_with_one_a_new_beginning(station: Station) -> None:
    assert station.reject("ready-reject").state == "rejected"
    with pytest.raises(UserError, match="task ready-reject is rejected: nothing to reject"):
        station.reject("ready-reject", "and again")
    assert station.reject("ready-sent-back", "keep the name").state not in ENDED
    assert station.task("ready-sent-back").comments == ["keep the name"]


@pytest.mark.parametrize("task", ["at-work", "waiting"])
def test_say_reaches_an_agent_that_works_or_will(station: Station, task: str) -> None:
    before = station.task(task)
    assert station.say(task, "no floats").id == task
    after = station.task(task)
    assert after.comments == ["no floats"]
    assert after.row.state == before.row.state
    assert after.row.changed_seq > before.row.changed_seq


def test_look_turns_verified_into_in_review_and_is_where_the_next_diff_begins(station: Station) -> None:
    assert [file.path for file in station.diff("ready-look", since_last_look=True).files] == ["ready-look.txt"]
    assert station.look("ready-look").state == "in-review"
    assert station.diff("ready-look", since_last_look=True).files == []
    assert [file.path for file in station.diff("ready-look").files] == ["ready-look.txt"]
    assert station.look("ready-look").state == "in-review"
    assert station.look("waiting").state == "queued"


def test_cancel_ends_what_works_and_what_is_ready_but_nothing_twice(station: Station) -> None:
    station.approve("ready-cancel")
    for task in ("to-cancel", "ready-cancel"):
        cancelled = station.cancel(task)
        assert (cancelled.state, cancelled.approved) == ("cancelled", False)
        with pytest.raises(UserError, match=f"task {task} is cancelled: nothing to cancel") as refused:
            station.cancel(task)
        assert "starts a new attempt" in refused.value.hint


def test_a_diff_holds_the_files_of_the_snapshot(station: Station) -> None:
    document, known = station.diff("ready-read"), station.task("ready-read").row
    assert (document.task, document.target, document.conflicts) == ("ready-read", "main", [])
    assert (document.base_commit, document.snapshot_commit) == (known.base_commit, known.snapshot_commit)
    (file,) = document.files
    assert (file.path, file.status, file.insertions, file.deletions) == ("ready-read.txt", "added", 1, 0)


def test_a_log_holds_the_messages_of_an_attempt_or_of_a_step(station: Station) -> None:
    whole = station.log("ready-read")
    assert whole.attempt == 1
    assert roles(whole.messages) == ["system", "user", "assistant", "tool", "assistant"], "a submission that is accepted needs no answer"
    assert station.log("ready-read", attempt=1) == whole
    assert [station.log("ready-read", step=step).messages for step in (1, 2)] == [whole.messages[2:4], whole.messages[4:]]


def test_a_snapshot_after_a_number_holds_what_changed_and_what_is_at_work(station: Station) -> None:
    whole = station.snapshot()
    assert [known.id for known in whole.tasks] == [*READY, *AT_WORK, *WAITING], "in the order of submission"
    assert sum(whole.queue.values()) == len(whole.tasks)
    assert all(whole.queue.values()), "states without tasks are left out"
    quiet = {known.id for known in whole.tasks if known.state in ENDED or known.id == "waiting"}
    assert not quiet & {known.id for known in station.snapshot(whole.seq).tasks}
    assert "at-work" in {known.id for known in station.snapshot(whole.seq).tasks}

    changed = station.look("ready-delta")
    fresh = station.snapshot(whole.seq)
    assert fresh.seq > whole.seq
    assert quiet & {known.id for known in fresh.tasks} == {"ready-delta"}
    assert {known.id: known for known in fresh.tasks}["ready-delta"].changed_seq == changed.changed_seq > whole.seq
    assert "ready-delta" not in {known.id for known in station.snapshot(fresh.seq).tasks}


@pytest.mark.parametrize("make", [silent_fake, silent_real], ids=["fake", "station"])
def test_a_station_that_is_not_there_says_how_to_start_one(make: Callable[[Path], Station], tmp_path: Path) -> None:
    with pytest.raises(StationDown, match="no station is running for ") as down:
        make(tmp_path).snapshot()
    assert "stationmaster up" in down.value.hint
