from __future__ import annotations

import pytest

from agents.meter import Meter
from orchestrator.metrics import LiveAttempt, ServerCount, TokenBook, Tokens, Window


def live(**counts: int) -> LiveAttempt:
    return LiveAttempt(meter=Meter(**counts))


def test_one_sample_is_no_rate() -> None:
    window = Window()
    window.add(0.0, 10)
    assert window.rate() is None


def test_a_rate_is_what_came_in_the_last_seconds_only() -> None:
    window = Window()
    for tick in range(100):
        window.add(tick * 0.25, 0 if tick < 60 else (tick - 60) * 25)
    assert window.rate() == pytest.approx(100.0)


@pytest.mark.parametrize("every_s", [0.25, 1.0, 2.5, 5.0])
def test_the_window_is_as_long_however_often_samples_come(every_s: float) -> None:
    window = Window()
    for tick in range(int(60 / every_s)):
        at = tick * every_s
        window.add(at, 0 if at < 50 else int((at - 50) * 100))
    assert window.rate() == pytest.approx(100.0)


def test_a_rate_is_known_even_when_samples_come_seldom() -> None:
    window = Window()
    window.add(0.0, 0)
    window.add(20.0, 400)
    assert window.rate() == pytest.approx(20.0)


def test_a_total_that_falls_begins_a_new_window() -> None:
    window = Window()
    window.add(0.0, 1_000)
    window.add(1.0, 10)
    window.add(2.0, 30)
    assert window.rate() == pytest.approx(20.0)


def test_an_ended_attempt_stays_in_the_total_and_leaves_the_rate() -> None:
    book = TokenBook(Tokens(input=100, output=50))
    attempt = live()
    book.open(("a", 1), attempt)
    book.sample(0.0)
    attempt.meter.output_tokens = 40
    book.sample(1.0)
    assert book.output_rate() == pytest.approx(40.0)
    book.close(("a", 1))
    assert book.total() == Tokens(input=100, output=90)
    assert book.rate(("a", 1)) is None


def test_a_resumed_attempt_is_not_counted_twice() -> None:
    book = TokenBook(Tokens(output=500))
    book.open(("a", 1), live(output_tokens=500))
    assert book.total().output == 500


def test_a_silent_attempt_has_no_rate_unless_it_streams() -> None:
    book = TokenBook(Tokens())
    attempt = live()
    book.open(("a", 1), attempt)
    book.sample(0.0)
    book.sample(1.0)
    assert book.rate(("a", 1)) is None
    attempt.meter.streaming = True
    assert book.rate(("a", 1)) == 0.0


def test_cached_tokens_stay_unknown_until_an_engine_tells() -> None:
    book = TokenBook(Tokens())
    attempt = live()
    book.open(("a", 1), attempt)
    assert book.total().cached is None
    attempt.meter.cached_tokens = 7
    assert book.total().cached == 7


def test_someone_elses_engine_counts_from_where_it_stood() -> None:
    count = ServerCount()
    assert count.output_tokens is None
    count.see(10_000, counted=0)
    count.see(10_400, counted=0)
    assert count.output_tokens == 400


def test_a_restarted_engine_goes_on_from_what_was_counted() -> None:
    count = ServerCount()
    count.see(10_000, counted=0)
    count.see(10_400, counted=0)
    count.see(25, counted=0)
    count.see(30, counted=0)
    assert count.output_tokens == 430


def test_an_engine_we_started_counts_from_zero_even_before_it_was_read() -> None:
    count = ServerCount()
    count.new_engine(fresh=True, counted=0)
    count.see(90, counted=0)
    count.new_engine(fresh=True, counted=0)
    count.see(10, counted=0)
    assert count.output_tokens == 100


def test_what_a_killed_engine_counted_after_its_last_reading_is_at_least_what_agents_received() -> None:
    count = ServerCount()
    count.new_engine(fresh=True, counted=0)
    count.see(90, counted=88)
    count.new_engine(fresh=True, counted=97)
    assert count.output_tokens == 97
    count.see(10, counted=104)
    assert count.output_tokens == 107


def test_the_same_for_an_engine_that_somebody_else_restarted() -> None:
    count = ServerCount()
    count.see(10_000, counted=0)
    count.see(10_400, counted=400)
    count.see(25, counted=430)
    assert count.output_tokens == 430


def test_tokens_of_engines_without_a_counter_are_no_difference_to_one_that_has_one() -> None:
    count = ServerCount()
    count.see(10_000, counted=50)
    count.see(10_400, counted=450)
    assert count.output_tokens == 450
