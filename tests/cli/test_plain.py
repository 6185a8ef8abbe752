"""Line output: what a person must see comes once, and so does its end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from orchestrator.cli.plain import LineOutput
from orchestrator.cli.watch import Watch
from orchestrator.cli.work import LIVE_LINES, tail
from orchestrator.client import StationClient
from orchestrator.home import Home
from orchestrator.views import Snapshot, StationView, Totals

STATION = StationView(pid=1, version="1", home="/home", started_at=0.0, agents=2)
TOTALS = Totals(
    input_tokens=0,
    cached_tokens=None,
    output_tokens=0,
    server_output_tokens=None,
    unattributed_tokens=None,
    tokens_per_s=None,
    input_tokens_per_s=None,
    max_parallel=0,
)


def test_a_warning_of_the_station_is_one_line_when_it_comes_and_one_when_it_goes(tmp_path: Path) -> None:
    now = Snapshot(seq=0, at=0.0, station=STATION, engine=None, queue={}, totals=TOTALS, tasks=[])
    watch, said = Watch(StationClient(Home(tmp_path)), [], now), list[str]()
    lines = LineOutput(watch, said.append)
    for warning in ("", "disk: 12 KIB free", "disk: 13 KIB free", "", ""):
        watch.now = msgspec.structs.replace(now, station=msgspec.structs.replace(STATION, warning=warning))
        lines.tell([])
    assert [line.split("── ")[1] for line in said] == ["warning: disk: 12 KIB free", "no longer: disk: 13 KIB free"]


def test_what_a_model_is_writing_is_wrapped_and_only_its_end_is_shown() -> None:
    shown = tail("word " * 5_000 + "\x1b[31mend").splitlines()
    assert len(shown) == LIVE_LINES + 1
    assert shown[0] == "…"
    assert shown[-1].endswith("\\x1b[31mend")
    assert max(map(len, shown)) <= 100
    assert tail("two\nlines") == "two\nlines"
