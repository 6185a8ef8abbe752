# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
import math
import re

import pytest

from tui import format as f


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "–"), (0, "0"), (7, "7"), (999, "999"), (1_000, "1.0k"), (1_240, "1.2k"), (9_994, "10.0k"), (12_345, "12.3k"), (99_960, "100k"),
        (123_456, "123k"), (999_499, "999k"), (999_500, "1M"), (1_234_567, "1.23M"), (12_345_678, "12.3M"), (1_200_000_000, "1.2G"), (-42, "-42"),
    ],
)  # fmt: skip
def test_tokens_fit_five_cells(count, shown):
    assert f.tokens(count) == shown
    assert len(shown) <= 5


@pytest.mark.parametrize(
    ("per_s", "shown"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0.0, "0"),
        (0.04, "0"),
        (3.44, "3.4"),
        (9.96, "10"),
        (342.4, "342"),
        (3_421.0, "3421"),
        (12_345.0, "12.3k"),
    ],
)
def test_a_rate_that_is_not_known_is_not_zero(per_s, shown):
    assert f.rate(per_s) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (-1, "0s"), (0.9, "0s"), (59.9, "59s"), (60, "1m00"), (65, "1m05"), (599, "9m59"), (600, "10m"), (3_599, "59m"), (3_600, "1h00"), (7_380, "2h03"),
     (86_399, "23h59"), (86_400, "24h"), (172_800, "2d"), (8_640_000, "100d")],
)  # fmt: skip
def test_ages_fit_five_cells(seconds, shown):
    assert f.age(seconds) == shown
    assert len(shown) <= 5


@pytest.mark.parametrize(("seconds", "shown"), [(None, "–"), (0.034, "0.03s"), (1.24, "1.2s"), (45, "45s"), (200, "3m20")])
def test_durations(seconds, shown):
    assert f.duration(seconds) == shown


@pytest.mark.parametrize(("ratio", "shown"), [(None, "–"), (0, "0 %"), (0.001, "<1 %"), (0.374, "37 %"), (0.375, "38 %"), (1, "100 %")])
def test_percent(ratio, shown):
    assert f.percent(ratio) == shown


def test_changes():
    assert f.changes(None, None) == "–"
    assert f.changes(None, 3) == "–"
    assert f.changes(0, 0) == "±0"
    assert f.changes(12, 3) == "+12 −3"
    assert f.changes(12_345, 0) == "+12.3k −0"
    assert f.files(None) == "–"
    assert f.files(3) == "3f"


def test_clock_is_local_time_of_day():
    assert re.fullmatch(r"\d\d:\d\d:\d\d", f.clock(1_700_000_000))


def test_sparkline_leaves_gaps_where_nothing_was_measured_and_draws_zero():
    assert f.sparkline([0.0, None, 4.0, 8.0]) == ["▁ ▄█"]


def test_tall_sparkline_fills_lower_rows_first():
    assert f.sparkline([1.0, 2.0], 2) == [" █", "██"]


def test_sparkline_of_nothing_but_zeros_is_a_low_line():
    assert f.sparkline([0.0, 0.0]) == ["▁▁"]
