"""Long lists in pages, for the order overview and its API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: Sequence[Item]
    number: int
    pages: int

    @property
    def has_next(self) -> bool:
        return self.number < self.pages

    @property
    def has_previous(self) -> bool:
        return self.number > 1


def page_count(total: int, size: int) -> int:
    """How many pages hold `total` items; an empty list still shows one."""
    return total // size + 1


def paginate(items: Sequence[Item], number: int, size: int = 25) -> Page[Item]:
    """Page `number`, counted from 1."""
    if size < 1:
        raise ValueError("size must be at least 1")
    pages = page_count(len(items), size)
    if not 1 <= number <= pages:
        raise LookupError(f"page {number} of {pages}")
    first = (number - 1) * size
    return Page(items[first : first + size], number, pages)
