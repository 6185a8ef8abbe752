import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.filters import ascii_of, speaks_utf8
from tui.foreign import lines_of, one_line, visible
from tui.marks import ASCII


def test_escape_sequences_become_readable():
    assert visible("\x1b[31mred\x07") == "\\x1b[31mred\\x07"


def test_bidi_overrides_and_zero_width_characters_become_readable():
    assert visible("a\u202eb\u2066c\u200bd\ufeff") == "a\\u202eb\\u2066c\\u200bd\\ufeff"


def test_lone_surrogates_become_readable():
    assert visible("\ud800x") == "\\ud800x"


def test_brackets_and_wide_characters_stay():
    assert visible("[/bold] 漢字 x[/]") == "[/bold] 漢字 x[/]"


def test_a_line_of_five_megabytes_is_cut_with_a_count():
    shown = visible("x" * 5_000_000)
    assert shown.endswith(" … 4,998,000 characters more")
    assert len(shown) < 2_100


def test_lines_keep_form_feeds_and_carriage_returns_in_sight():
    assert lines_of("a\fb\r\nc\rd\n") == ["a\\x0cb", "c\\x0dd"]


def test_too_many_lines_are_counted():
    assert lines_of("a\n" * 10, most=3) == ["a", "a", "a", "… 7 lines more"]


def test_one_line_has_no_line_breaks():
    assert one_line("a\n  b\t\tc") == "a b c"


@given(st.text(st.characters(), max_size=300))
def test_nothing_that_a_terminal_obeys_is_left(text):
    for character in visible(text) + one_line(text) + "".join(lines_of(text)):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_every_glyph_of_ours_has_an_ascii_like_of_the_same_width():
    assert all(like.isascii() and len(like) == cell_len(glyph) == 1 for glyph, like in ASCII.items())


@given(st.text(max_size=50))
def test_ascii_keeps_every_cell_in_place(text):
    shown = visible(text)
    assert ascii_of(shown).isascii()
    assert cell_len(ascii_of(shown)) == sum(cell_len(character) for character in shown)


def test_locale_decides_about_utf8():
    assert speaks_utf8({"LANG": "de_DE.UTF-8"})
    assert speaks_utf8({})
    assert not speaks_utf8({"LANG": "de_DE.ISO-8859-1"})
    assert not speaks_utf8({"LC_ALL": "C", "LANG": "de_DE.UTF-8"})
    assert not speaks_utf8({"LANG": "C", "LC_CTYPE": "C.UTF-8"})
    assert speaks_utf8({"LC_CTYPE": "C.UTF-8"})
