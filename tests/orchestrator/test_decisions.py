from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents.events import StepCompleted
from orchestrator import lookups
from orchestrator.errors import UserError
from orchestrator.events import Approved, AttemptEnded, Commented

if TYPE_CHECKING:
    from tests.orchestrator.conftest import Desk


async def test_a_cancelled_task_takes_the_right_to_write_from_its_worker(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running()
    await desk.decisions.cancel("a")
    assert await desk.queue.renew([claim], 30) == [claim]
    row = await desk.row("a")
    assert (row.state, row.failure) == ("cancelled", None)
    assert [event.fact for event in await desk.log("a") if isinstance(event.fact, AttemptEnded)] == [AttemptEnded(outcome="cancelled")]


async def test_a_queued_task_is_cancelled_without_an_attempt(desk: Desk) -> None:
    await desk.add("a")
    await desk.decisions.cancel("a")
    assert await desk.queue.claim("station-1", 30) is None
    with pytest.raises(UserError, match="nothing to cancel") as refused:
        await desk.decisions.cancel("a")
    assert refused.value.hint == "`stationmaster retry a` starts a new attempt"
    await desk.decisions.retry("a")
    assert (await desk.claim()).attempt == 1


async def test_a_retry_forgives_and_brings_the_comment_to_the_agent(desk: Desk) -> None:
    await desk.add("a", attempts=1)
    await desk.queue.fail(await desk.running(), "limit", "60 steps", outcome="limit")
    assert await desk.state("a") == "failed"
    await desk.decisions.retry("a", "Look at money.py first.")
    claim = await desk.running()
    assert (claim.attempt, claim.resumed) == (2, False)
    assert await desk.queue.take_messages(claim) == ["Look at money.py first."]
    assert await desk.queue.fail(claim, "limit", "60 steps", outcome="limit") == "failed"


async def test_a_task_at_work_is_not_retried(desk: Desk) -> None:
    await desk.add("a")
    with pytest.raises(UserError, match="has not ended") as refused:
        await desk.decisions.retry("a")
    assert "`stationmaster cancel a` stops it" in refused.value.hint
    await desk.running()
    with pytest.raises(UserError, match="has not ended"):
        await desk.decisions.retry("a")


async def test_an_approval_holds_for_the_snapshot_that_was_seen(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    row = await desk.row("a")
    assert (row.state, row.approved) == ("in-review", True)
    assert (await desk.log("a"))[-1].fact == Approved(snapshot_commit="s1")
    await desk.decisions.reject("a", "Not like this.")
    assert (await desk.row("a")).approved is False


async def test_only_what_waits_for_review_is_approved(desk: Desk) -> None:
    await desk.add("a")
    with pytest.raises(UserError, match="not waiting for review"):
        await desk.decisions.approve("a")
    claim = await desk.running()
    await desk.queue.move(claim, "claimed-done")
    await desk.queue.verify(claim)
    with pytest.raises(UserError, match="no snapshot"):
        await desk.decisions.approve("a")


async def test_a_rejection_with_a_comment_is_a_new_attempt_and_without_one_an_end(desk: Desk) -> None:
    await desk.add("a", "b")
    await desk.verified()
    await desk.verified()
    await desk.decisions.reject("a", "Round half to even.")
    await desk.decisions.reject("b")
    assert [await desk.state(task) for task in "ab"] == ["queued", "rejected"]
    assert (await desk.detail("a")).comments == ["Round half to even."]
    claim = await desk.running()
    assert (claim.task, claim.attempt) == ("a", 2)
    assert await desk.queue.take_messages(claim) == ["Round half to even."]
    with pytest.raises(UserError, match="nothing to reject"):
        await desk.decisions.reject("a")


async def test_what_a_person_says_is_handed_out_once(desk: Desk) -> None:
    await desk.add("a")
    await desk.decisions.say("a", "before")
    claim = await desk.running()
    await desk.decisions.say("a", "first")
    await desk.decisions.say("a", "second")
    assert await desk.queue.take_messages(claim) == ["before", "first", "second"]
    assert await desk.queue.take_messages(claim) == []
    await desk.step(claim, 1)
    await desk.queue.release(claim)
    assert await desk.queue.take_messages(await desk.running()) == []
    assert [event.fact for event in await desk.log("a") if isinstance(event.fact, Commented)][1] == Commented(text="first")


async def test_words_that_a_crash_may_have_swallowed_are_said_again(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.running("station-1")
    await desk.decisions.say("a", "heard")
    assert await desk.queue.take_messages(claim) == ["heard"]
    await desk.queue.record(claim, [StepCompleted(step=1)])
    await desk.decisions.say("a", "perhaps not")
    assert await desk.queue.take_messages(claim) == ["perhaps not"]
    await desk.crash("station-2")
    assert await desk.queue.take_messages(await desk.running("station-2")) == ["perhaps not"]


async def test_nothing_is_said_to_a_task_without_an_agent(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    with pytest.raises(UserError, match="no agent works on it") as refused:
        await desk.decisions.say("a", "Well done.")
    assert "retry a" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "message"), [("  ", "nothing to say"), ("x" * 200_000, "too long"), ("a\x00", "NUL"), ("\udcff", "surrogate")]
)
async def test_words_that_cannot_be_said_are_refused(desk: Desk, text: str, message: str) -> None:
    await desk.add("a")
    with pytest.raises(UserError, match=message):
        await desk.decisions.say("a", text)
    assert (await desk.detail("a")).comments == []


async def test_a_look_is_remembered_with_the_snapshot_it_saw(desk: Desk) -> None:
    await desk.add("a", "b")
    await desk.verified()
    assert await desk.read(lambda db: lookups.last_look(db, "a")) is None
    await desk.decisions.look("a")
    look = await desk.read(lambda db: lookups.last_look(db, "a"))
    assert look == lookups.Look(snapshot_commit="s1", at=desk.clock.time())
    assert await desk.state("a") == "in-review"
    await desk.decisions.look("b")
    assert await desk.read(lambda db: lookups.last_look(db, "b")) is None


async def test_a_retry_may_begin_at_another_commit_and_the_old_attempt_keeps_its_own(desk: Desk) -> None:
    await desk.add("a")
    claim = await desk.verified()
    old = claim.spec.base_commit
    await desk.decisions.retry("a", base_commit="f" * 40)
    assert (await desk.row("a")).base_commit == old, "what is there to see is still the old attempt's work"
    again = await desk.claim()
    assert (again.attempt, again.spec.base_commit) == (2, "f" * 40)
    assert (await desk.row("a")).base_commit == "f" * 40
    assert [attempt.base_commit for attempt in (await desk.detail("a")).attempts] == [old, "f" * 40]
