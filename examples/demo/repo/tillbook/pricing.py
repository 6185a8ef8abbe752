"""Discounts, and sharing one amount among several payers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tillbook.money import Money

# From this many pieces on, this many percent off. Highest step first.
QUANTITY_STEPS = ((100, Decimal(12)), (50, Decimal(8)), (10, Decimal(3)))


def quantity_discount(pieces: int) -> Decimal:
    """The discount in percent."""
    for threshold, percent in QUANTITY_STEPS:
        if pieces >= threshold:
            return percent
    return Decimal(0)


def line_total(unit_price: Money, pieces: int) -> Money:
    keep = 1 - quantity_discount(pieces) / 100
    return unit_price.times(pieces * keep)


def total(lines: Sequence[Money]) -> Money:
    result = Money(0, lines[0].currency) if lines else Money(0)
    for line in lines:
        result += line
    return result


def split(bill: Money, payers: int) -> list[Money]:
    """Share a bill among `payers`; the shares add up to the bill."""
    if payers < 1:
        raise ValueError("a bill needs at least one payer")
    share = bill.minor // payers
    return [Money(share, bill.currency)] * payers
