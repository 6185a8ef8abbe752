"""Following tasks to their end: what counts as an end, and what the result says."""

from __future__ import annotations

import pytest

from agents.events import Fact, ModelReplied
from orchestrator.cli.watch import Tally, stuck_behind
from orchestrator.events import Event, StateChanged, TaskAdded
from orchestrator.task import State
from orchestrator.views import TaskRow


def row(task: str, state: State, *after: str) -> TaskRow:
    return TaskRow(
        id=task,
        title=task,
        kind="coding",
        state=state,
        state_age_s=1.0,
        waiting_for=None,
        attempt=1,
        step=None,
        agent="builtin",
        workspace=None,
        branch=None,
        base_commit="0" * 40,
        snapshot_commit=None,
        input_tokens=None,
        cached_tokens=None,
        output_tokens=None,
        tokens_per_s=None,
        files_changed=None,
        insertions=None,
        deletions=None,
        checks=[],
        failure=None,
        after=list(after),
    )


def rows(*all_rows: TaskRow) -> dict[str, TaskRow]:
    return {one.id: one for one in all_rows}


@pytest.mark.parametrize("state", ["failed", "stuck", "cancelled", "rejected", "quarantined"])
def test_a_task_behind_one_that_did_not_succeed_never_starts(state: State) -> None:
    assert stuck_behind("b", rows(row("a", state), row("b", "queued", "a"))) == "a"


def test_it_is_found_through_others_that_wait() -> None:
    known = rows(row("a", "failed"), row("b", "queued", "a"), row("c", "queued", "b"))
    assert stuck_behind("c", known) == "a"


@pytest.mark.parametrize("state", ["queued", "running", "interrupted", "verified", "in-review", "merged"])
def test_a_task_behind_one_that_is_on_its_way_or_done_will_start(state: State) -> None:
    assert stuck_behind("b", rows(row("a", state), row("b", "queued", "a"))) is None


def test_a_task_at_work_is_not_stuck_whatever_became_of_its_dependency() -> None:
    assert stuck_behind("b", rows(row("a", "cancelled"), row("b", "running", "a"))) is None


def told(tally: Tally, *facts: tuple[str | None, Fact]) -> Tally:
    for at, (task, fact) in enumerate(facts):
        tally.take(Event(seq=at + 1, at=float(at), task=task, attempt=1, fact=fact))  # type: ignore[arg-type]
    return tally


def replied(tokens: int | None) -> ModelReplied:
    return ModelReplied(
        step=1, input_tokens=5, cached_tokens=None, output_tokens=tokens, ttft_s=None, decode_s=None, tool_calls=0, finish_reason="stop"
    )


def test_parallel_tasks_are_those_running_at_one_moment() -> None:
    tally = told(
        Tally(frozenset({"a", "b", "c"})),
        ("a", StateChanged(old="preparing", new="running")),
        ("b", StateChanged(old="preparing", new="running")),
        ("a", StateChanged(old="running", new="claimed-done")),
        ("c", StateChanged(old="preparing", new="running")),
    )
    assert tally.max_parallel == 2


def test_time_runs_from_the_first_task_queued_to_the_last_one_ended() -> None:
    tally = told(
        Tally(frozenset({"a", "b"})),
        (None, StateChanged(old="queued", new="admitted")),
        ("a", TaskAdded(title="a")),
        ("b", TaskAdded(title="b")),
        ("b", StateChanged(old="running", new="failed")),
        ("a", StateChanged(old="claimed-done", new="verified")),
    )
    assert (tally.began_at, tally.ended_at) == (1.0, 4.0)


def test_what_a_person_does_with_an_ended_task_is_not_time_of_the_run() -> None:
    tally = told(
        Tally(frozenset({"a", "b"})),
        ("a", TaskAdded(title="a")),
        ("b", StateChanged(old="running", new="failed")),
        ("a", StateChanged(old="claimed-done", new="verified")),
        ("a", StateChanged(old="verified", new="in-review")),
        ("b", StateChanged(old="failed", new="cancelled")),
        ("a", StateChanged(old="in-review", new="merging")),
        ("a", StateChanged(old="merging", new="merged")),
    )
    assert tally.ended_at == 2.0


def test_a_reply_without_usage_makes_the_sum_unknown_and_anothers_reply_the_engines_count() -> None:
    tally = told(Tally(frozenset({"a"})), ("a", replied(10)), ("a", replied(None)), ("z", replied(7)))
    assert tally.tokens == {"a": 10}
    assert tally.uncounted == 1
    assert tally.others
