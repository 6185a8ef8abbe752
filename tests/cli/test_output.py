"""Text of others is harmless on a terminal; tables fit."""

from __future__ import annotations

import pytest

from orchestrator.cli.output import age, clip, count, one_line, table, visible, width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\rb", "a\\x0db"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("lone \ud800", "lone \\ud800"),
        ("a tag \U000e0041", "a tag \\U000e0041"),
        ("soft\u00adhyphen", "soft\\xadhyphen"),
        ("\u180e\ufff9\ue000", "\\u180e\\ufff9\\ue000"),
        ("heart ❤\ufe0f", "heart ❤"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("Grüße, 日本", "Grüße, 日本"),
    ],
)
def test_characters_that_a_terminal_would_obey_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_line_break_in_a_title_does_not_break_the_table() -> None:
    assert one_line("two\n lines\there") == "two lines here"


def test_wide_characters_take_two_cells() -> None:
    assert width("日本") == 4
    assert width(clip("日本語です", 5)) <= 5


def test_a_table_gives_way_in_its_last_column_first() -> None:
    lines = table(["TASK", "TITLE"], [["fix", "a title that is much too long for this terminal"]], room=24)
    assert all(width(line) <= 24 for line in lines)
    assert lines[1].startswith("fix")
    assert lines[1].endswith("…")


def test_a_table_without_a_limit_cuts_nothing() -> None:
    long = "x" * 300
    assert long in table(["TASK"], [[long]])[1]


def test_unknown_figures_are_not_zero() -> None:
    assert count(None) == age(None) == "—"
    assert count(0) == "0"
    assert (count(12_345), count(3_400_000), age(59), age(7_200)) == ("12k", "3.4M", "59s", "2h")
