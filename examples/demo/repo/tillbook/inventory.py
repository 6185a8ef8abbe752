"""Stock on the shelf, as the sum of its movements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Movement:
    item: str
    pieces: int
    reason: str = "sale"


class OutOfStock(Exception):
    """More pieces were asked for than there are."""


class Inventory:
    def __init__(self, movements: list[Movement] = []) -> None:
        self.movements = movements

    def pieces(self, item: str) -> int:
        return sum(move.pieces for move in self.movements if move.item == item)

    def receive(self, item: str, pieces: int) -> None:
        self.movements.append(Movement(item, pieces, "delivery"))

    def take(self, item: str, pieces: int, reason: str = "sale") -> None:
        if pieces > self.pieces(item):
            raise OutOfStock(f"{pieces} × {item} asked, {self.pieces(item)} there")
        self.movements.append(Movement(item, -pieces, reason))

    def below(self, minimum: int) -> list[str]:
        """Items to order again, by name."""
        items = {move.item for move in self.movements}
        return sorted(item for item in items if self.pieces(item) < minimum)
