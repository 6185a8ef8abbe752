from __future__ import annotations

import sys
import unicodedata

from orchestrator.visible import ESCAPED, visible


def test_no_character_of_unicode_that_a_terminal_would_obey_or_hide_gets_through() -> None:
    through = visible("".join(map(chr, range(sys.maxunicode + 1))))
    assert {unicodedata.category(character) for character in through} & ESCAPED == set()


def test_what_is_to_be_kept_is_kept() -> None:
    assert visible("a\tb\nc\r", kept="\t\n") == "a\tb\nc\\x0d"


def test_letters_of_all_scripts_stay() -> None:
    assert visible("Grüße, 日本, مرحبا, e\u0301, 👍") == "Grüße, 日本, مرحبا, e\u0301, 👍"
