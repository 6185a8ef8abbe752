"""What sold best, for the weekly sheet on the office wall."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sale:
    item: str
    pieces: int
    cents: int


@dataclass(frozen=True, slots=True)
class Row:
    item: str
    pieces: int
    cents: int


def totals(sales: Iterable[Sale]) -> list[Row]:
    """One row per item, in the order in which the items first sold."""
    pieces: dict[str, int] = {}
    cents: dict[str, int] = {}
    for sale in sales:
        pieces[sale.item] = pieces.get(sale.item, 0) + sale.pieces
        cents[sale.item] = cents.get(sale.item, 0) + sale.cents
    return [Row(item, pieces[item], cents[item]) for item in pieces]


def bestsellers(sales: Iterable[Sale], limit: int = 10) -> list[Row]:
    """The rows with the highest takings; equal ones stay in the order of first sale."""
    ranked = sorted(totals(sales), key=lambda row: row.cents)
    ranked.reverse()
    return ranked[:limit]


def ranks(rows: list[Row]) -> list[int]:
    """Places as in sport: equal takings share one, and the next is left out."""
    return [1 + sum(other.cents > row.cents for other in rows) for row in rows]
