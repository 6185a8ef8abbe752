"""Writes the pictures of `docs/images`: `python -m tests.tui.pictures [FOLDER [NAME...]]`."""

from __future__ import annotations

import asyncio
import math
import sys
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.conftest import busy_station
from tui.app import Dashboard
from tui.state import Sample

SMALL, USUAL, WIDE = (80, 24), (120, 40), (200, 60)
PICTURES: dict[str, tuple[tuple[tuple[int, int], ...], tuple[str, ...]]] = {
    "fleet": ((SMALL, USUAL, WIDE), ()),
    "task": ((SMALL, USUAL, WIDE), ("j", "enter")),
    "review": ((SMALL, USUAL, WIDE), ("3", "j", "j", "v")),
    "reject": ((SMALL,), ("3", "v", "x", *"use")),
    "help": ((USUAL,), ("question_mark",)),
    "lost": ((SMALL,), ()),
}
"""For each picture its sizes and the keys that lead to it."""


def with_past(app: Dashboard) -> None:
    """Five minutes of an engine that warmed up, was full, had a pause and went on."""
    now = app.now()

    def rate(i: int) -> float | None:
        if 110 < i < 118:
            return None
        return 1_180 * min(1.0, i / 70) * (0.86 + 0.14 * math.sin(i / 9)) * (0.45 if 190 < i < 215 else 1)

    past = tuple(Sample(at=now - 300 + i, tokens_per_s=rate(i)) for i in range(298))
    app.model = type(app.model)(**{**{name: getattr(app.model, name) for name in app.model.__slots__}, "samples": past})


async def picture(folder: Path, name: str, size: tuple[int, int], keys: tuple[str, ...], *, lose: bool = False) -> None:
    station = busy_station()
    app = Dashboard(station, poll_s=0.02, back_off_s=(0.02,), ascii_only=False)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        with_past(app)
        if lose:
            station.go_down()
        await pilot.press(*keys)
        await settled(pilot)
        path = folder / f"{name}-{size[0]}x{size[1]}.svg"
        # Some viewers drop the spaces at the ends of a text, which are the columns' alignment.
        path.write_text(app.export_screenshot(title="Stationmaster").replace("<text ", '<text xml:space="preserve" '))


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(12):
        await pilot.pause(0.03)


async def main(folder: Path, names: list[str]) -> None:
    for name in names or PICTURES:
        sizes, keys = PICTURES[name]
        for size in sizes:
            await picture(folder, name, size, keys, lose=name == "lost")


if __name__ == "__main__":
    chosen = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
    chosen.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen, sys.argv[2:]))
