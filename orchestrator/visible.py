"""Text of others (models, files, tasks, errors) made harmless on its way to a terminal, for the command line and the dashboard alike.

Covers: whatever Unicode calls a control, a format character (direction marks, zero-width characters, tags, soft hyphens), a separator
of lines, a surrogate, private or unassigned; variation selectors, about which terminals disagree.
Does not cover: look-alike letters, and combining marks by the dozen.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that a terminal would obey or hide."""


def visible(text: str, *, kept: str = "") -> str:
    r"""`text` with every such character written out, as in `\x1b` or `\u202e`; those in `kept` stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character in kept else _shown(character) for character in text)


@lru_cache(4096)
def _shown(character: str) -> str:
    code = ord(character)
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return ""
    if unicodedata.category(character) not in ESCAPED:
        return character
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
