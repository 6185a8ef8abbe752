"""When the closing run starts: every evening at the same time on the shop's clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def next_run(last: datetime) -> datetime:
    """The run after `last`, which must carry the shop's time zone."""
    if last.tzinfo is None:
        raise ValueError("the last run has no time zone")
    following = last.astimezone(timezone.utc) + timedelta(days=1)
    return following.astimezone(last.tzinfo)


def runs_between(first: datetime, end: datetime) -> list[datetime]:
    """All runs from `first` up to, but not including, `end`."""
    runs = []
    while first < end:
        runs.append(first)
        first = next_run(first)
    return runs
