from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.admission import MIB, Room, disk_space, reason_to_wait

ROOM = Room(agents=4, at_work=3, engine_problem=None, disk_free_bytes=2_000 * MIB, disk_floor_bytes=512 * MIB)


def test_a_task_starts_while_there_is_room() -> None:
    assert reason_to_wait(ROOM) is None


def test_the_one_thing_without_room_is_the_reason() -> None:
    assert reason_to_wait(replace(ROOM, at_work=4)) == "agents: 4 of 4 at work"
    assert reason_to_wait(replace(ROOM, engine_problem="starting")) == "engine: starting"
    assert reason_to_wait(replace(ROOM, disk_free_bytes=100 * MIB)) == "disk: 100 MiB free, 512 MiB needed"


def test_a_store_without_room_waits_even_when_the_disk_claims_to_have_some() -> None:
    assert reason_to_wait(replace(ROOM, store_full=True)) == "disk: 2000 MiB free, 512 MiB needed"


def test_the_floor_of_a_small_disk_is_a_small_part_of_it(tmp_path: Path) -> None:
    _, floor = disk_space(tmp_path)
    assert 0 < floor <= 512 * MIB
