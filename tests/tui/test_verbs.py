import pytest

from orchestrator.task import STATES, TRANSITIONS
from tests.tui.conftest import row
from tui.verbs import in_keys, objection


@pytest.mark.parametrize("state", STATES)
def test_nothing_that_the_station_would_refuse_by_the_state_is_let_through(state):
    known = row("a", state, snapshot_commit="9be2714c", attempt=1)
    for verb, wanted in (("cancel", "cancelled"), ("retry", "queued"), ("reject", "rejected"), ("merge", "merging")):
        if wanted not in TRANSITIONS[state]:
            assert objection(verb, known), verb


def test_a_task_that_has_ended_is_not_cancelled():
    for state in ("failed", "stuck", "conflicted", "quarantined"):
        assert objection("cancel", row("a", state)) == f"cancel: a is {state}, nothing is at work"
        assert objection("retry", row("a", state)) is None
    assert objection("cancel", row("a", "in-review")) == "cancel: a is finished; x rejects it in its review"


def test_an_approval_is_given_once_and_only_to_a_change():
    assert objection("approve", row("a", "verified")) is None
    assert objection("approve", row("a", "in-review", approved=True)) == "approve: a is approved, m merges it"
    assert objection("approve", row("a", "in-review", snapshot_commit=None)) == "approve: a has changed nothing; r makes a new attempt"
    assert objection("approve", row("a", "running")) == "approve: a is running"


def test_words_are_for_who_can_hear_them():
    assert objection("say", row("a", "queued")) is None
    assert objection("say", row("a", "running")) is None
    assert objection("say", row("a", "merging")) == "say: a is being merged"


def test_hints_name_keys_where_there_are_some():
    assert in_keys("look at `stationmaster diff a`, then `stationmaster approve a`") == "look at the diff, then a"
    assert in_keys('`stationmaster retry a --comment "…"` starts a new attempt') == "r starts a new attempt"
    assert in_keys("it waits for you: `stationmaster diff a`, then `approve` or `reject`") == "it waits for you: the diff, then a or x"
    assert in_keys("start it with `stationmaster up`") == "start it with `stationmaster up`"
