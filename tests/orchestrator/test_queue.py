from __future__ import annotations

import asyncio
import itertools
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents.events import ModelAsked, ModelRetried, Noted, StepCompleted, ToolFinished, ToolStarted
from orchestrator import lookups
from orchestrator.errors import IllegalTransition, LeaseLost, UserError
from orchestrator.eventlog import OUTPUT_LIMIT, events_after, last_seq
from orchestrator.events import (
    AttemptEnded,
    AttemptResumed,
    CheckFinished,
    SnapshotTaken,
    StateChanged,
    StationStarted,
    TaskAdded,
    WorkspaceCreated,
)
from orchestrator.task import STATES, TRANSITIONS, State

if TYPE_CHECKING:
    from tests.orchestrator.conftest import Desk


async def ended(desk: Desk, task: str) -> list[AttemptEnded]:
    return [event.fact for event in await desk.log(task) if isinstance(event.fact, AttemptEnded)]


async def path_of(desk: Desk, task: str) -> list[State]:
    """The states that the log says the task went through."""
    changes = [event.fact for event in await desk.log(task) if isinstance(event.fact, StateChanged)]
    for before, after in itertools.pairwise(changes):
        assert before.new == after.old
    return [change.new for change in changes]


# add


async def test_added_tasks_wait_in_the_queue(desk: Desk) -> None:
    await desk.add("a", "b", checks=("true",), priority=3)
    assert await desk.read(lookups.queue_counts) == {"queued": 2}
    row = await desk.row("a")
    assert (row.state, row.attempt, row.waiting_for, row.step, row.output_tokens) == ("queued", 0, None, None, None)
    assert [(check.command, check.exit_code, check.seconds) for check in row.checks] == [("true", None, None)]
    assert [event.fact for event in await desk.log("b")] == [TaskAdded(title="b")]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"id": "old"}, "exists already"),
        ({"id": "OLD"}, "exists already"),
        ({"id": "New"}, "two tasks"),
        ({"id": "../x"}, "cannot be a task's id"),
        ({"id": "x", "after": ("nobody",)}, "does not exist"),
        ({"id": "x", "after": ("y",)}, "wait for each other"),
        ({"id": "x", "after": ("x",)}, "wait for each other: x after x"),
        ({"id": "x", "prompt": "a\x00b"}, "prompt holds a NUL"),
        ({"id": "x", "title": "a\ud800"}, "title holds"),
        ({"id": "x", "checks": ("\udcff",)}, "checks holds"),
    ],
)
async def test_one_bad_task_leaves_nothing_queued(desk: Desk, bad: dict[str, object], message: str) -> None:
    await desk.add("old")
    before = await desk.read(last_seq)
    with pytest.raises(UserError, match=message) as refused:
        await desk.queue.add(
            [desk.spec("new"), desk.spec("y", after=("x",) if bad["id"] == "x" else ()), desk.spec("z"), desk.spec(**{"task": "", **bad})]
        )  # type: ignore[arg-type]
    assert refused.value.hint
    assert await desk.read(lookups.queue_counts) == {"queued": 1}
    assert await desk.read(last_seq) == before
    assert len(desk.published) == before


async def test_t1_any_text_a_terminal_would_choke_on_is_kept_as_it_is(desk: Desk) -> None:
    text = "[/bold] x[/] [link=http://e]a[/link] \x1b[31m\x07\r\n\t\u202e \U0001f600 ünï"
    await desk.add("a", title=text, prompt=text)
    detail = await desk.detail("a")
    assert (detail.row.title, detail.prompt) == (text, text)


# claim


async def test_the_highest_priority_goes_first_and_then_the_oldest(desk: Desk) -> None:
    await desk.queue.add([desk.spec("low", priority=-1), desk.spec("one"), desk.spec("two"), desk.spec("high", priority=9)])
    assert [(await desk.claim()).task for _ in range(4)] == ["high", "one", "two", "low"]
    assert await desk.queue.claim("station-1", 30) is None


async def test_a_claim_counts_the_attempt_and_raises_the_fence(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.claim()
    assert (claim.attempt, claim.fence, claim.resumed, claim.steps, claim.workspace) == (1, 1, False, 0, None)
    assert claim.spec == desk.spec("a")
    assert (await desk.detail("a")).attempts[0].number == 1
    assert await path_of(desk, "a") == ["admitted"]


async def test_two_claims_never_get_the_same_task(tmp_path: Path, desk_class: type[Desk]) -> None:
    names = [f"t{number}" for number in range(60)]
    async with desk_class.open(tmp_path / "station.db") as desk:
        await desk.add(*names)
    taken: dict[str, list[str]] = {}
    together = threading.Barrier(4)

    async def take(owner: str) -> None:
        async with desk_class.open(tmp_path / "station.db") as desk:  # a connection, and a thread, of its own
            together.wait(30)
            while (claim := await desk.queue.claim(owner, 30)) is not None:
                taken.setdefault(owner, []).append(claim.task)

    threads = [threading.Thread(target=asyncio.run, args=(take(f"station-{number}"),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert sorted(task for tasks in taken.values() for task in tasks) == sorted(names)


async def test_a_dependent_waits_and_says_for_whom(desk: Desk) -> None:
    await desk.queue.add([desk.spec("last", after=("first", "second"), priority=9), desk.spec("first"), desk.spec("second")])
    assert (await desk.row("last")).waiting_for == "task first (queued)"
    await desk.verified()
    assert (await desk.row("last")).waiting_for == "task second (queued)"
    claim = await desk.running()
    assert claim.task == "second"
    assert await desk.queue.claim("station-1", 30) is None
    await desk.queue.move(claim, "claimed-done")
    await desk.queue.verify(claim)
    assert (await desk.row("last")).waiting_for is None
    assert (await desk.claim()).task == "last"


async def test_a_dependent_of_a_failed_task_keeps_waiting_with_the_reason_in_sight(desk: Desk) -> None:
    await desk.queue.add([desk.spec("first", attempts=1), desk.spec("last", after=("first",))])
    assert await desk.queue.fail(await desk.running(), "checks", "1 failed", outcome="submitted") == "failed"
    assert await desk.queue.claim("station-1", 30) is None
    row = await desk.row("last")
    assert (row.state, row.waiting_for) == ("queued", "task first, which is failed")
    await desk.decisions.retry("first")
    await desk.verified()
    assert (await desk.claim()).task == "last"


@pytest.mark.parametrize("state", ["verified", "in-review", "merging", "merged"])
async def test_work_that_passed_its_checks_satisfies_whoever_comes_after(desk: Desk, state: State) -> None:
    await desk.queue.add([desk.spec("first"), desk.spec("last", after=("first",))])
    await desk.verified()
    if state != "verified":
        await desk.decisions.approve("first")
    if state in ("merging", "merged"):
        await desk.merges.begin("first")
    if state == "merged":
        await desk.merges.landed("first", "m")
    assert await desk.state("first") == state
    assert (await desk.claim()).task == "last"


# the worker


async def test_a_tasks_life_is_told_by_its_log(desk: Desk) -> None:
    await desk.add("a", checks=("pytest",))
    claim = await desk.claim()
    await desk.queue.move(claim, "preparing")
    await desk.queue.record(claim, [WorkspaceCreated(workspace="/w", branch="stationmaster/a-1", base_commit="b", seconds=0.2)])
    await desk.queue.move(claim, "running")
    await desk.step(claim, 1)
    await desk.queue.record(claim, [SnapshotTaken(commit="s1", files_changed=2, insertions=5, deletions=1, seconds=0.1)])
    await desk.queue.move(claim, "claimed-done")
    await desk.queue.record(claim, [CheckFinished(command="pytest", exit_code=0, seconds=1.5, output="5 passed")])
    await desk.clock.advance(7)
    await desk.queue.verify(claim)
    await desk.clock.advance(5)
    row = await desk.row("a")
    assert (row.state, row.state_age_s, row.workspace, row.branch) == ("verified", 5, "/w", "stationmaster/a-1")
    assert (row.snapshot_commit, row.files_changed, row.insertions, row.deletions) == ("s1", 2, 5, 1)
    assert [(check.exit_code, check.seconds) for check in row.checks] == [(0, 1.5)]
    assert await path_of(desk, "a") == ["admitted", "preparing", "running", "claimed-done", "verified"]
    assert await ended(desk, "a") == [AttemptEnded(outcome="submitted")]
    detail = await desk.detail("a")
    assert detail.checks[0].output == "5 passed"
    assert (detail.attempts[0].outcome, detail.attempts[0].ended_at, detail.attempts[0].steps) == ("submitted", desk.clock.time() - 5, 1)
    assert row.changed_seq == await desk.read(last_seq)


async def test_facts_are_published_after_the_commit_in_the_order_of_the_log(desk: Desk) -> None:
    await desk.add("a", "b")
    claims = [await desk.running(), await desk.running()]
    async with asyncio.TaskGroup() as group:
        for claim in claims:
            for step in range(20):
                group.create_task(desk.queue.record(claim, [ModelAsked(step=step), desk.reply(step)]))
    assert desk.published == await desk.log()
    assert [event.seq for event in desk.published] == list(range(1, len(desk.published) + 1))


async def test_tokens_are_summed_and_what_was_not_reported_stays_unknown(desk: Desk) -> None:
    await desk.add("a", "b")
    claim = await desk.running()
    await desk.queue.record(claim, [desk.reply(1, input_tokens=None, output_tokens=None, decode_s=None)])
    row = await desk.row("a")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (None, None, None)
    await desk.queue.record(claim, [desk.reply(1), desk.reply(2, input_tokens=150, cached_tokens=90, output_tokens=None)])
    await desk.queue.record(claim, [desk.reply(3, cached_tokens=10, decode_s=None)])
    row = await desk.row("a")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (350, 100, 20)
    other = await desk.running()
    await desk.queue.record(other, [desk.reply(1)])
    totals = await desk.read(lookups.totals)
    assert (totals.input_tokens, totals.cached_tokens, totals.output_tokens, totals.max_parallel) == (450, 100, 30, 2)


async def test_the_row_shows_what_the_agent_does_now(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.claim()
    seen = [(await desk.row("a")).activity]
    await desk.queue.move(claim, "preparing")
    await desk.queue.move(claim, "running")
    for fact in (
        ModelAsked(step=1),
        ModelRetried(step=1, reason="503", wait_s=2.0),
        ToolStarted(step=1, call_id="c", tool="run", summary="pytest -q"),
        ToolFinished(step=1, call_id="c", tool="run", summary="pytest -q", ok=False, seconds=1.0),
    ):
        await desk.queue.record(claim, [fact])
        seen.append((await desk.row("a")).activity)
    assert seen == ["workspace", "model", "waiting-engine", "tool", "tool"]
    row = await desk.row("a")
    assert (row.last_tool, row.step) == ("✗ pytest -q", 1)
    await desk.queue.release(claim)
    assert (await desk.row("a")).activity is None


async def test_a_worker_cannot_decide_what_is_not_its_own_to_decide(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running()
    for new in ("merged", "verified", "cancelled", "queued"):
        with pytest.raises(IllegalTransition):
            await desk.queue.move(claim, new)
    with pytest.raises(IllegalTransition, match="from running to verified"):
        await desk.queue.verify(claim)
    assert await desk.state("a") == "running"
    assert await ended(desk, "a") == []


async def test_a_long_check_output_keeps_its_tail(desk: Desk) -> None:
    await desk.add("a", checks=("make",))
    claim = await desk.running()
    await desk.queue.record(claim, [CheckFinished(command="make", exit_code=None, seconds=60.0, output="x" * 100_000 + "the end")])
    detail = await desk.detail("a")
    assert detail.checks[0].output.endswith("the end")
    assert len(detail.checks[0].output) < OUTPUT_LIMIT + 100
    assert "characters left out" in detail.checks[0].output
    assert (detail.row.checks[0].exit_code, detail.row.checks[0].seconds) == (None, 60.0)


async def test_text_that_json_cannot_hold_does_not_stop_a_worker(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running()
    await desk.queue.record(
        claim, [ToolStarted(step=1, call_id="c", tool="read", summary="read \udcff.txt\x00"), Noted(step=1, text="\ud83d")]
    )
    assert (await desk.row("a")).last_tool == "read ?.txt\ufffd"
    assert (await desk.detail("a")).notes == ["?"]
    assert desk.published == await desk.log()
    await desk.queue.fail(claim, "bug", "Traceback \udcff", outcome="bug")


# leases and fences


async def test_q2_a_stalled_worker_that_wakes_up_can_write_nothing(desk: Desk) -> None:
    await desk.add("a")
    stalled = await desk.running("station-1")
    await desk.step(stalled, 1)
    await desk.clock.advance(31)
    assert await desk.queue.renew([], 30) == []
    assert await desk.state("a") == "interrupted"
    successor = await desk.running("station-2")
    assert (successor.attempt, successor.fence, successor.resumed, successor.steps) == (1, 2, True, 1)
    before = await desk.read(last_seq)
    row = await desk.row("a")
    for write in (
        desk.queue.move(stalled, "claimed-done"),
        desk.queue.record(stalled, [StepCompleted(step=2)]),
        desk.queue.take_messages(stalled),
        desk.queue.verify(stalled),
        desk.queue.fail(stalled, "stuck", "", outcome="stuck"),
        desk.queue.release(stalled),
    ):
        with pytest.raises(LeaseLost):
            await write
    assert await desk.read(last_seq) == before
    assert await desk.queue.renew([stalled], 30) == [stalled]
    assert await desk.row("a") == row
    assert await desk.queue.renew([successor], 30) == []


async def test_q2_an_old_worker_of_the_same_name_is_not_the_new_one(desk: Desk) -> None:
    await desk.add("a")
    old = await desk.running("station-1")
    await desk.queue.release(old)
    new = await desk.running("station-1")
    assert await desk.queue.renew([old, new], 30) == [old]


async def test_a_worker_is_stopped_by_a_lease_that_ran_out_even_before_a_successor_came(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running()
    await desk.clock.advance(31)
    await desk.queue.renew([], 30)
    with pytest.raises(LeaseLost):
        await desk.queue.record(claim, [StepCompleted(step=1)])


async def test_renewals_keep_a_lease(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running()
    for _ in range(5):
        await desk.clock.advance(20)
        assert await desk.queue.renew([claim], 30) == []
        assert await desk.queue.renew([], 30) == []
    assert await desk.state("a") == "running"


async def test_a_suspended_machine_costs_the_live_attempts_nothing_and_lets_go_of_the_others(desk: Desk) -> None:
    await desk.add("a", "b", "c")
    live, gone, stalled = await desk.running("station-2"), await desk.running("station-2"), await desk.running("station-1")
    await desk.clock.advance(100_000)
    assert await desk.queue.renew([live], 30) == []
    assert [await desk.state(claim.task) for claim in (live, gone, stalled)] == ["running", "interrupted", "interrupted"]
    await desk.step(live, 1)


@pytest.mark.parametrize("steps_done", [0, 3])
async def test_q1_a_killed_stations_task_goes_on_in_the_same_attempt(desk: Desk, steps_done: int) -> None:
    await desk.add("a", "b")
    claim = await desk.claim("station-1")
    await desk.queue.move(claim, "preparing")
    if steps_done:
        await desk.queue.record(claim, [WorkspaceCreated(workspace="/w", branch="br", base_commit="b", seconds=0.2)])
        await desk.queue.move(claim, "running")
        for step in range(1, steps_done + 1):
            await desk.step(claim, step)
    assert await desk.crash("station-2") == ["a"]
    assert await desk.state("a") == "interrupted"
    again = await desk.claim("station-2")
    assert (again.task, again.attempt, again.fence, again.resumed, again.steps) == ("a", 1, 2, True, steps_done)
    assert (again.workspace, again.branch) == (("/w", "br") if steps_done else (None, None))
    assert again.output_tokens == 10 * steps_done
    assert [event.fact for event in await desk.log("a") if isinstance(event.fact, AttemptResumed)] == [
        AttemptResumed(step=steps_done, resumption=1)
    ]


async def test_q1_only_the_tasks_of_former_incarnations_are_orphans(desk: Desk) -> None:
    await desk.add("a", "b", "c")
    await desk.running("station-1")
    await desk.running("station-2")
    assert await desk.queue.interrupt_orphans("station-2") == ["a"]
    assert [await desk.state(task) for task in "abc"] == ["interrupted", "running", "queued"]


# poison, setbacks, faults


async def test_q4_a_task_that_kills_its_station_is_quarantined_and_the_others_finish(desk: Desk) -> None:
    good = [f"good{number}" for number in range(10)]
    await desk.add("poison", priority=1)
    await desk.add(*good)
    for incarnation in range(1, 5):
        claim = await desk.running(f"station-{incarnation}")
        assert claim.task == "poison"
        await desk.crash(f"station-{incarnation + 1}")
    for _ in good:
        assert (await desk.verified("station-5")).task != "poison"
    assert await desk.queue.claim("station-5", 30) is None
    assert await desk.read(lookups.queue_counts) == {"quarantined": 1, "verified": 10}
    row = await desk.row("poison")
    assert row.failure is not None
    assert (row.attempt, row.failure.kind, row.failure.message) == (1, "poison", "resumed 3 times without completing a step")
    assert (await desk.detail("poison")).attempts[0].resumptions == 3


async def test_q4_progress_between_crashes_is_no_poison(desk: Desk) -> None:
    await desk.add("a")
    for crash in range(1, 12):
        claim = await desk.running(f"station-{crash}")
        assert claim.resumed == (crash > 1)
        if crash % 3 == 0:
            await desk.step(claim, claim.steps + 1)
        await desk.crash(f"station-{crash + 1}")
    assert (await desk.detail("a")).attempts[0].resumptions == 10
    assert await desk.state("a") == "interrupted"


async def test_q4_a_step_done_over_again_is_no_progress(desk: Desk) -> None:
    await desk.add("a")
    for crash in range(1, 5):
        claim = await desk.running(f"station-{crash}")
        await desk.step(claim, 1)
        await desk.crash(f"station-{crash + 1}")
    assert await desk.queue.claim("station-9", 30) is None
    assert await desk.state("a") == "quarantined"


async def test_q4_a_planned_stop_is_not_counted(desk: Desk) -> None:
    await desk.add("a", "b")
    for stop in range(1, 10):
        owner = f"station-{stop}"
        await desk.running(owner)
        await desk.queue.release(await desk.running(owner))
        assert await desk.queue.release_all(owner) == ["a"]
    claims = [await desk.claim("station-10"), await desk.claim("station-10")]
    assert [(claim.attempt, claim.resumed) for claim in claims] == [(1, True), (1, True)]
    assert [(await desk.detail(task)).attempts[0].resumptions for task in "ab"] == [0, 0]


async def test_q4_crashes_after_a_planned_stop_are_counted_again(desk: Desk) -> None:
    await desk.add("a")
    await desk.queue.release(await desk.running("station-0"))
    for crash in range(1, 5):
        await desk.running(f"station-{crash}")
        await desk.crash(f"station-{crash + 1}")
    assert await desk.queue.claim("station-5", 30) is None
    assert await desk.state("a") == "quarantined"
    assert (await desk.detail("a")).attempts[0].resumptions == 3


async def test_a_fault_uses_an_attempt_up_and_the_next_waits_a_little(desk: Desk) -> None:
    await desk.add("a", attempts=3)
    waits = []
    for attempt in (1, 2):
        claim = await desk.running()
        assert claim.attempt == attempt
        assert await desk.queue.fail(claim, "checks", "2 failed", outcome="submitted") == "queued"
        assert await desk.queue.claim("station-1", 30) is None
        assert (await desk.row("a")).failure is None
        start = await desk.read(lambda db: lookups.next_start(db, now=desk.clock.time()))
        assert start is not None
        waits.append(start - desk.clock.time())
        reason = f"after checks: attempt {attempt} of 3 is used up"
        assert (await desk.row("a")).waiting_for == f"its back-off, {waits[-1]:.0f} s more, {reason}"
        await desk.clock.advance(waits[-1])
        assert (await desk.row("a")).waiting_for is None
    assert waits == [1, 2]
    claim = await desk.running()
    assert not claim.resumed
    assert await desk.queue.fail(claim, "checks", "still 2 failed", outcome="submitted") == "failed"
    row = await desk.row("a")
    assert row.failure is not None
    assert (row.state, row.failure.kind, row.failure.message) == ("failed", "checks", "still 2 failed")
    assert [fact.failure for fact in await ended(desk, "a")] == ["checks"] * 3
    assert await desk.read(lambda db: lookups.next_start(db, now=desk.clock.time())) is None


async def test_a_loop_that_is_stuck_ends_as_stuck(desk: Desk) -> None:
    await desk.add("a", attempts=1)
    assert await desk.queue.fail(await desk.running(), "stuck", "the same call six times", outcome="stuck") == "stuck"


async def test_s12_an_engine_that_is_down_uses_nothing_up(desk: Desk) -> None:
    await desk.add("a", attempts=1)
    for setback in range(1, 5):
        claim = await desk.running()
        assert (claim.attempt, claim.resumed) == (1, setback > 1)
        assert await desk.queue.fail(claim, "engine", "connection refused", outcome="engine") == "interrupted"
        assert await desk.queue.claim("station-1", 30) is None
        await desk.clock.advance(300)
    attempt = (await desk.detail("a")).attempts[0]
    assert (attempt.resumptions, attempt.ended_at) == (0, None)
    claim = await desk.running()
    await desk.step(claim, 1)
    for _ in range(4):
        assert await desk.queue.fail(claim, "host", "disk full", outcome="host") == "interrupted"
        await desk.clock.advance(300)
        claim = await desk.running()
    assert await desk.queue.fail(claim, "host", "disk full", outcome="host") == "quarantined"
    row = await desk.row("a")
    assert row.failure is not None
    assert (row.failure.kind, row.attempt) == ("host", 1)


async def test_a_broken_workspace_is_replaced_without_using_an_attempt_up(desk: Desk) -> None:
    await desk.add("a", attempts=1)
    for number in range(1, 5):
        claim = await desk.claim()
        assert (claim.attempt, claim.resumed) == (number, False)
        await desk.queue.move(claim, "preparing")
        assert await desk.queue.fail(claim, "workspace", "no space", outcome="workspace") == "queued"
        await desk.clock.advance(300)
    assert await desk.queue.fail(await desk.claim(), "workspace", "no space", outcome="workspace") == "quarantined"


# reads


async def test_rows_come_when_they_changed_when_they_work_and_when_they_wait(desk: Desk) -> None:
    await desk.queue.add([desk.spec("works", priority=2), desk.spec("idle"), desk.spec("waits", after=("idle",))])
    await desk.running()
    seq = await desk.read(last_seq)

    async def ids(after: int) -> list[str]:
        return [row.id for row in await desk.read(lambda db: lookups.task_rows(db, now=0, after=after))]

    assert await ids(0) == ["works", "idle", "waits"]
    assert await ids(seq) == ["works", "waits"]
    await desk.decisions.cancel("idle")
    assert await ids(seq) == ["works", "idle", "waits"]
    chosen = await desk.read(lambda db: lookups.task_rows(db, now=0, states=("cancelled", "running")))
    assert [row.id for row in chosen] == ["works", "idle"]


async def test_events_come_in_bounded_pages(desk: Desk) -> None:
    await desk.add(*[f"t{number}" for number in range(25)])
    pages, after = [], 0
    while page := await desk.read(lambda db, after=after: events_after(db, after, limit=10)):
        pages.append(len(page))
        after = page[-1].seq
    assert pages == [10, 10, 5]
    only = await desk.read(lambda db: events_after(db, 3, task="t5"))
    assert [event.task for event in only] == ["t5"]


async def test_an_unknown_task_is_told_with_the_nearest(desk: Desk) -> None:
    await desk.add("round-half-even")
    for look in (lookups.task_spec, lookups.attempt, lambda db, task: lookups.task_row(db, task, now=0)):
        with pytest.raises(UserError, match="no task round-half-evn") as refused:
            await desk.read(lambda db, look=look: look(db, "round-half-evn"))
        assert refused.value.hint == "did you mean round-half-even?"


async def test_attempts_are_read_by_number(desk: Desk) -> None:
    await desk.add("a")
    assert await desk.read(lambda db: lookups.attempt(db, "a")) is None
    await desk.queue.fail(await desk.running(), "limit", "60 steps", outcome="limit")
    await desk.clock.advance(10)
    await desk.running()
    newest = await desk.read(lambda db: lookups.attempt(db, "a"))
    first = await desk.read(lambda db: lookups.attempt(db, "a", 1))
    assert newest is not None and newest.number == 2
    assert first is not None and first.failure is not None and first.failure.kind == "limit"


async def test_settings_and_the_stations_own_facts_are_kept(desk: Desk) -> None:
    await desk.journal.remember("baseline", {"http://e": 12})
    await desk.journal.remember("baseline", {"http://e": 13})
    assert await desk.read(lambda db: lookups.setting(db, "baseline")) == b'{"http://e":13}'
    assert await desk.read(lambda db: lookups.setting(db, "nothing")) is None
    await desk.journal.log(StationStarted(pid=1, version="0"))
    assert [(event.task, event.fact) for event in desk.published] == [(None, StationStarted(pid=1, version="0"))]


def test_every_state_has_a_way_out_and_can_be_reached() -> None:
    reached = {new for following in TRANSITIONS.values() for new in following} | {"queued"}
    assert set(TRANSITIONS) == set(STATES) == reached
    assert [state for state in STATES if not TRANSITIONS[state]] == ["merged"]


async def test_a_task_that_only_waited_its_turn_is_no_poison(desk: Desk) -> None:
    """A station that dies again and again must not quarantine the tasks behind the one that kills it."""
    await desk.queue.add([desk.spec("a")])
    for crash in range(1, 9):
        await desk.claim(f"station-{crash}")
        await desk.crash(f"station-{crash + 1}")
    claim = await desk.claim("station-9")
    assert (claim.task, claim.attempt) == ("a", 1)
