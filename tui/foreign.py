"""Text from outside (models, files, tasks, errors) made fit for a terminal, one character after the other.

Covers: control characters, escape sequences, bidirectional overrides, zero-width characters, lone surrogates and endless lines.
Does not cover: markup. Nothing here or in the widgets parses markup, so brackets are only brackets.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

TAB = "    "
# Variation selectors choose how the character before them looks, and terminals disagree about its width then.
_DROPPED = {0xFE0E, 0xFE0F}
_ESCAPED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@lru_cache(4096)
def _seen(character: str) -> str:
    code = ord(character)
    if code in _DROPPED:
        return ""
    if character == "\t":
        return TAB
    if unicodedata.category(character) not in _ESCAPED:
        return " " if character == "\u00a0" else character
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str, *, limit: int = 2_000) -> str:
    """`text` without a character that a terminal would obey, those as `\\x1b`, `\\u202e`; tabs as four spaces.

    A newline is escaped too: split first. What lies beyond `limit` characters is counted, not shown.
    """
    shown = text[:limit]
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(map(_seen, shown))
    beyond = len(text) - limit
    return shown if beyond <= 0 else f"{shown} … {beyond:,} characters more"


def lines_of(text: str, *, limit: int = 2_000, most: int = 2_000) -> list[str]:
    """The visible lines of `text`, at most `most` of them; the last one then says how many are missing."""
    # Not splitlines(): it would break at form feeds and separators, which are to be seen.
    found = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    shown = [visible(line, limit=limit) for line in found[:most]]
    if len(found) > most:
        shown.append(f"… {len(found) - most:,} lines more")
    return shown


def one_line(text: str, *, limit: int = 400) -> str:
    """`text` as one visible line, runs of white space as one space."""
    return visible(" ".join(text[: 4 * limit].split()), limit=limit)
