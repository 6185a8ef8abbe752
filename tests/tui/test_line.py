# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.line import Span, crop, fit, line, spread, text_of, width_of, wrap

texts = st.text(st.characters(categories=["L", "N", "P", "S"], include_characters=" "), max_size=60)


@given(texts, st.integers(0, 40), st.booleans())
def test_fit_gives_exactly_the_width(text, width, right):
    assert cell_len(fit(text, width, right=right)) == width


def test_fit_cuts_with_an_ellipsis_and_keeps_wide_characters_whole():
    assert fit("abcdef", 4) == "abc…"
    assert fit("漢字漢字", 4) == "漢 …"


@given(st.lists(texts, max_size=5), st.integers(1, 40))
def test_crop_never_exceeds_the_width(parts, width):
    assert width_of(crop(line(*parts), width)) <= width


@given(st.lists(texts, max_size=5), st.integers(2, 40), st.integers(0, 10))
def test_wrap_loses_no_character(parts, width, indent):
    spans = line(*parts)
    rows = wrap(spans, width, indent)
    assert all(width_of(row) <= width for row in rows)
    shown = "".join(text_of(row) if i == 0 else text_of(row)[min(indent, width - 2) :] for i, row in enumerate(rows))
    assert shown == text_of(spans)


def test_wrap_prefers_a_space():
    assert [text_of(row) for row in wrap(line("one two three"), 9)] == ["one two ", "three"]


def test_wrap_keeps_roles():
    assert wrap(line(Span("abc", "bad"), Span("def", "good")), 4) == [
        (Span("abc", "bad"), Span("d", "good")),
        (Span("", "plain"), Span("ef", "good")),
    ]


def test_spread_lets_the_left_side_give_way():
    assert text_of(spread(line("a/very/long/path"), line("+1 −2"), 14)) == "a/very/… +1 −2"
