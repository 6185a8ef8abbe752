"""What a stored count of tokens may be, so that sums of them never leave SQLite's integers: those raise when they overflow."""

from __future__ import annotations

from typing import overload

MOST_TOKENS = 10**12
"""Of one attempt: more than any has. Millions of attempts with as many can still be summed."""


@overload
def countable(tokens: int) -> int: ...
@overload
def countable(tokens: int | None) -> int | None: ...
def countable(tokens: int | None) -> int | None:
    """Within 0 and `MOST_TOKENS`, whatever was stored or reported; None stays None."""
    return None if tokens is None else min(max(tokens, 0), MOST_TOKENS)


def countable_sql(column: str) -> str:
    """The same for a column or an expression; NULL stays NULL."""
    return f"min(max({column}, 0), {MOST_TOKENS})"
