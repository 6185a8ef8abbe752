from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import IllegalTransition, UserError
from orchestrator.events import MergeLanded, MergeRefused
from orchestrator.queue.merge_records import MergeRecord, unfinished
from orchestrator.store import rows

if TYPE_CHECKING:
    from tests.orchestrator.conftest import Desk


async def test_a_merge_is_written_down_before_and_after_it_lands(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    begun = await desk.merges.begin("a")
    assert begun == MergeRecord(task="a", repo="/repo", target="main", snapshot_commit="s1", target_commit=None, commit=None, state="begun")
    assert await desk.state("a") == "merging"
    await desk.merges.prepared("a", target_commit="t1", commit="m1")
    assert [(merge.target_commit, merge.commit, merge.state) for merge in await desk.read(unfinished)] == [("t1", "m1", "prepared")]
    await desk.merges.landed("a", "m1")
    row = await desk.row("a")
    assert (row.state, row.merged_commit) == ("merged", "m1")
    assert MergeLanded(target="main", commit="m1") in [event.fact for event in await desk.log("a")]
    assert await desk.read(unfinished) == []


async def test_a_merge_under_way_when_the_station_was_killed_is_found_again(desk: Desk) -> None:
    await desk.add("a", "b", target_branch="release")
    for task in "ab":
        await desk.verified()
        await desk.decisions.approve(task)
        await desk.merges.begin(task)
    await desk.merges.prepared("b", target_commit="t1", commit="m1")
    assert await desk.crash("station-2") == []
    assert [(merge.task, merge.state, merge.target) for merge in await desk.read(unfinished)] == [
        ("a", "begun", "release"),
        ("b", "prepared", "release"),
    ]


async def test_a_refused_merge_goes_back_to_review_and_keeps_its_approval(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    await desk.merges.begin("a")
    await desk.merges.refused("a", "the checkout has changes")
    row = await desk.row("a")
    assert (row.state, row.approved, row.failure) == ("in-review", True, None)
    await desk.merges.begin("a")
    await desk.merges.landed("a", "m1")
    assert await desk.state("a") == "merged"


async def test_conflicts_are_reported_and_can_be_merged_again_or_retried(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    await desk.merges.begin("a")
    await desk.merges.refused("a", "2 files conflict", ["x.py", "y.py"])
    row = await desk.row("a")
    assert row.failure is not None
    assert (row.state, row.failure.kind, row.failure.message) == ("conflicted", "conflict", "2 files conflict")
    refusal = MergeRefused(target="main", reason="2 files conflict", conflicts=("x.py", "y.py"))
    assert refusal in [event.fact for event in await desk.log("a")]
    await desk.merges.begin("a")
    await desk.merges.refused("a", "still", ["x.py"])
    await desk.decisions.retry("a", "Rebase onto main.")
    assert (await desk.claim()).attempt == 2


async def test_what_cannot_be_merged_is_told(desk: Desk) -> None:
    await desk.queue.add([desk.spec("a"), desk.spec("detached", target_branch=None), desk.spec("bare")])
    with pytest.raises(UserError, match="a is queued and cannot be merged"):
        await desk.merges.begin("a")
    await desk.verified()
    with pytest.raises(UserError, match="a is not approved"):
        await desk.merges.begin("a")
    await desk.verified()
    await desk.decisions.approve("detached")
    with pytest.raises(UserError, match="names no branch"):
        await desk.merges.begin("detached")
    assert await desk.state("detached") == "in-review"
    claim = await desk.running()
    await desk.queue.move(claim, "claimed-done")
    await desk.queue.verify(claim)
    with pytest.raises(UserError, match="no snapshot"):
        await desk.merges.begin("bare")


async def test_only_the_approved_snapshot_is_merged(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    await desk.store.write(lambda db: rows(db, "UPDATE attempt SET snapshot_commit = 's2' WHERE task = 'a'"))
    with pytest.raises(UserError, match="has changed since it was approved"):
        await desk.merges.begin("a")
    assert await desk.state("a") == "in-review"
    await desk.decisions.approve("a")
    assert (await desk.merges.begin("a")).snapshot_commit == "s2"


async def test_a_merge_happens_once(desk: Desk) -> None:
    await desk.add("a")
    await desk.verified()
    await desk.decisions.approve("a")
    await desk.merges.begin("a")
    with pytest.raises(UserError, match="is merging"):
        await desk.merges.begin("a")
    with pytest.raises(UserError, match="nothing to cancel"):
        await desk.decisions.cancel("a")
    await desk.merges.landed("a", "m1")
    with pytest.raises(IllegalTransition, match="no merge"):
        await desk.merges.landed("a", "m1")
    with pytest.raises(UserError, match="is merged already"):
        await desk.merges.begin("a")
    with pytest.raises(UserError):
        await desk.decisions.retry("a")
