"""Reservations of the delivery van: who has it from when to when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Slot:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise ValueError("a slot ends after it starts")

    def overlaps(self, other: Slot) -> bool:
        starts_inside = other.start <= self.start < other.end
        ends_inside = other.start < self.end <= other.end
        return starts_inside or ends_inside


class AlreadyTaken(Exception):
    def __init__(self, slot: Slot, holder: str) -> None:
        super().__init__(f"taken by {holder} until {slot.end:%d.%m. %H:%M}")
        self.slot = slot
        self.holder = holder


@dataclass(slots=True)
class Calendar:
    taken: list[tuple[Slot, str]] = field(default_factory=list)

    def reserve(self, slot: Slot, holder: str) -> None:
        for other, owner in self.taken:
            if slot.overlaps(other):
                raise AlreadyTaken(other, owner)
        self.taken.append((slot, holder))
        self.taken.sort(key=lambda entry: entry[0].start)
