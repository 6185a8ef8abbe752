import msgspec

from tests.tui.conftest import engine, row
from tui.fake import FakeStation, FakeTask
from tui.state import (
    HISTORY_S,
    Counts,
    Model,
    Sample,
    Selection,
    chart,
    counts,
    fold,
    group,
    listed,
    lose,
    needs_human,
    next_after,
    next_in,
    state_age_s,
)


def station_with(*rows):
    station = FakeStation(engine=engine(), clock=lambda: 0.0)
    for known in rows:
        station.put(FakeTask(row=known))
    return station


def test_nothing_is_known_before_the_first_snapshot():
    model = Model()
    assert model.age_s(5.0) is None
    assert model.stale(5.0)
    assert counts(model.queue) is None


def test_a_delta_changes_only_the_rows_it_holds():
    station = station_with(row("a", "running"), row("b", "queued"))
    model = fold(Model(), station.snapshot(), 10.0)
    station.change("a", step=4)
    delta = station.snapshot(model.seq)
    assert [known.id for known in delta.tasks] == ["a"]
    after = fold(model, delta, 11.0)
    assert after.row("a").step == 4
    assert after.tasks["b"] is model.tasks["b"]
    assert model.row("a").step == 3


def test_places_are_those_of_first_sight_whatever_comes_later():
    station = station_with(row("a", "queued"), row("b", "queued"))
    model = fold(Model(), station.snapshot(), 0.0)
    station.change("a", state="running")
    model = fold(model, station.snapshot(model.seq), 1.0)
    assert listed(model, Selection(order="submitted"), 1.0) == ["a", "b"]


def test_a_sequence_number_that_went_back_is_another_history():
    model = fold(Model(), station_with(row("old", "queued"), row("older", "queued")).snapshot(), 0.0)
    fresh = station_with(row("new", "queued")).snapshot()
    assert list(fold(model, fresh, 1.0).tasks) == ["new"]
    assert next_after(model, fresh) == 0


def test_another_station_process_is_asked_for_all_rows():
    station = station_with(row("a", "queued"))
    model = fold(Model(), station.snapshot(), 0.0)
    assert next_after(model, station.snapshot()) == model.seq
    station.come_back(pid=77)
    assert next_after(model, station.snapshot()) == 0


def test_numbers_are_stale_after_three_seconds_or_when_the_station_is_lost():
    model = fold(Model(), station_with().snapshot(), 10.0)
    assert not model.stale(13.0)
    assert model.stale(13.1)
    assert lose(model, "gone", now=10.5, clock=1.0).stale(10.5)


def test_the_first_moment_of_silence_stays_and_an_answer_ends_it():
    station = station_with()
    model = lose(lose(Model(), "gone", now=1.0, clock=100.0), "still gone", now=2.0, clock=101.0)
    assert (model.lost.since, model.lost.clock, model.lost.reason) == (1.0, 100.0, "still gone")
    assert fold(model, station.snapshot(), 3.0).lost is None


def test_ages_count_on_between_snapshots():
    model = fold(Model(), station_with(row("a", "running", state_age_s=5.0)).snapshot(), 10.0)
    assert state_age_s(model.tasks["a"], 12.5) == 7.5


def test_one_sample_a_second_and_old_ones_go():
    station = station_with()
    model = Model()
    for tenth in range(40):
        station.tokens_per_s = float(tenth)
        model = fold(model, station.snapshot(), tenth / 10)
    assert [sample.tokens_per_s for sample in model.samples] == [9.0, 19.0, 29.0, 39.0]
    model = fold(model, station.snapshot(), HISTORY_S + 2.5)
    assert [sample.at for sample in model.samples] == [3.0, HISTORY_S + 2.5]


def test_chart_shows_gaps_as_unknown():
    samples = tuple(Sample(at=float(i), tokens_per_s=None if 4 <= i < 8 else 10.0) for i in range(12))
    assert chart(samples, 11.9, columns=6, span_s=12.0) == [10.0, 10.0, None, None, 10.0, 10.0]
    assert chart((), 11.9, columns=3, span_s=12.0) == [None] * 3
    assert chart(samples, 11.9, columns=0, span_s=12.0) == []


def test_chart_bridges_a_slot_narrower_than_the_time_between_samples():
    samples = tuple(Sample(at=float(i), tokens_per_s=5.0) for i in range(0, 8, 2))
    assert chart(samples, 7.0, columns=8, span_s=8.0) == [5.0] * 7 + [None]


def test_counts_hold_every_task_once():
    queue = {
        "queued": 3,
        "interrupted": 1,
        "running": 2,
        "claimed-done": 1,
        "verified": 4,
        "in-review": 1,
        "failed": 1,
        "conflicted": 1,
        "merged": 5,
        "cancelled": 2,
    }
    found = counts(queue)
    assert found == Counts(waiting=4, working=3, review=5, failed=2, done=7)
    assert found.total == sum(queue.values())


def test_who_waits_for_a_person_comes_first_then_who_works():
    rows = [
        row("q", "queued"),
        row("m", "merged"),
        row("w", "running"),
        row("r", "in-review"),
        row("f", "failed"),
        row("s", "stuck"),
    ]
    model = fold(Model(), station_with(*rows).snapshot(), 0.0)
    assert listed(model, Selection(), 0.0) == ["f", "s", "w", "r", "q", "m"]
    assert [known.id for known in rows if needs_human(known)] == ["r", "f", "s"]
    assert group(row("x", "cancelled")) == "done"


def test_filter_by_words_looks_at_id_title_kind_and_state():
    model = fold(Model(), station_with(row("a", "running", title="Leap YEARS", kind="document"), row("b", "queued")).snapshot(), 0.0)
    for words in ("leap", "years docu", "running", "A"):
        assert listed(model, Selection(text=words), 0.0) == ["a"], words
    assert listed(model, Selection(text="nothing of the kind"), 0.0) == []


def test_filter_by_state():
    model = fold(
        Model(),
        station_with(row("w", "running"), row("q", "queued"), row("f", "stuck"), row("r", "verified"), row("m", "merged")).snapshot(),
        0.0,
    )
    shown = {only: listed(model, Selection(only=only), 0.0) for only in ("waiting", "working", "review", "failed", "done")}
    assert shown == {"waiting": ["q"], "working": ["w"], "review": ["r"], "failed": ["f"], "done": ["m"]}


def test_orders_are_total_and_unknown_numbers_come_last():
    rows = [
        row("b", "running", output_tokens=None, tokens_per_s=1.0),
        row("a", "running", output_tokens=5, insertions=None),
        row("c", "running", output_tokens=9, state_age_s=99.0),
    ]
    model = fold(Model(), station_with(*rows).snapshot(), 0.0)
    order = {name: listed(model, Selection(order=name), 0.0) for name in ("id", "tokens", "tok/s", "diff", "age")}
    assert order == {
        "id": ["a", "b", "c"],
        "tokens": ["c", "a", "b"],
        "tok/s": ["b", "a", "c"],
        "diff": ["b", "c", "a"],
        "age": ["c", "b", "a"],
    }


def test_next_goes_round_and_skips_what_is_not_wanted():
    tasks = ["a", "b", "c", "d"]
    assert next_in(tasks, "a", {"b", "d"}) == "b"
    assert next_in(tasks, "d", {"b"}) == "b"
    assert next_in(tasks, "b", {"b"}) == "b"
    assert next_in(tasks, "b", {"a", "d"}, step=-1) == "a"
    assert next_in(tasks, "a", {"d"}, step=-1) == "d"
    assert next_in(tasks, None, {"a"}) == "a"
    assert next_in(tasks, "a", set()) is None
    assert next_in([], None, {"a"}) is None


def test_snapshots_are_what_the_wire_carries():
    snapshot = station_with(row("a", "running")).snapshot()
    assert msgspec.json.decode(msgspec.json.encode(snapshot), type=type(snapshot)) == snapshot
