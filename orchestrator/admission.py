"""May another task start now? If not, the one thing that has no room is the reason that people see."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
KIB = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """`engine_problem` is None when the engine answers. `store_full` holds once a write of the store found no room, until there is some again."""

    agents: int
    at_work: int
    engine_problem: str | None
    disk_free_bytes: int
    disk_floor_bytes: int
    store_full: bool = False


def reason_to_wait(room: Room) -> str | None:
    """One short line; None when a task may start."""
    if room.store_full or room.disk_free_bytes < room.disk_floor_bytes:
        return f"disk: {_size(room.disk_free_bytes)} free, {_size(room.disk_floor_bytes)} needed"
    if room.engine_problem is not None:
        return f"engine: {room.engine_problem}"
    if room.at_work >= room.agents:
        return f"agents: {room.at_work} of {room.agents} at work"
    return None


def _size(number_bytes: int) -> str:
    return f"{number_bytes // MIB} MiB" if number_bytes >= 10 * MIB else f"{number_bytes // KIB} KiB"


def disk_space(path: Path) -> tuple[int, int]:
    """(free to us, floor below which nothing new starts) in bytes: 512 MiB, but never more than a twentieth of a small disk."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize, min(512 * MIB, found.f_blocks * found.f_frsize // 20)
