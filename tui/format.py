# ruff: noqa: RUF001, RUF002 (minus signs and dashes are what people shall see)
"""Numbers and words as the dashboard writes them. Pure; unknown is always '–', never 0."""

from __future__ import annotations

import math
import time

UNKNOWN = "–"
BARS = " ▁▂▃▄▅▆▇█"


def tokens(count: int | None) -> str:
    """At most five cells: 999, 1.2k, 12.3k, 123k, 1.23M, 12.3M, 1.2G."""
    if count is None:
        return UNKNOWN
    sign, size = ("-" if count < 0 else ""), abs(count)
    for unit, scale in (("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)):
        # 999,950 would round to 1000.0k, so the next unit takes over a little early.
        if size < 999.5 * scale or unit == "G":
            return sign + _three_digits(size / scale, unit)
    raise AssertionError("unreachable")


def _three_digits(value: float, unit: str) -> str:
    if not unit:
        return f"{value:.0f}"
    if value < 9.995:
        return f"{value:.2f}".rstrip("0").rstrip(".") + unit if unit != "k" else f"{value:.1f}{unit}"
    return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"


def grouped(count: int | None) -> str:
    """All digits, in groups of three."""
    return UNKNOWN if count is None else f"{count:,}"


def rate(per_s: float | None) -> str:
    """A rate in at most five cells: 0, 3.4, 342, 3421, 12.3k."""
    if per_s is None or not math.isfinite(per_s):
        return UNKNOWN
    if per_s < 0.05:
        return "0"
    if per_s < 9.95:
        return f"{per_s:.1f}"
    return f"{per_s:.0f}" if per_s < 9_999.5 else tokens(round(per_s))


def age(seconds: float | None) -> str:
    """At most five cells: 0s, 59s, 1m05, 59m, 2h03, 47h, 3d."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3_600, whole // 86_400
    if whole < 60:
        return f"{whole}s"
    if minutes < 10:
        return f"{minutes}m{whole % 60:02}"
    if hours < 1:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02}"
    return f"{hours}h" if hours < 48 else f"{days}d"


def duration(seconds: float | None) -> str:
    """How long something took: 0.03s, 1.2s, 45s, 3m20."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 1:
        return f"{seconds:.2f}s"
    return f"{seconds:.1f}s" if seconds < 10 else age(seconds)


def percent(ratio: float | None) -> str:
    """A ratio of 0 to 1 in whole per cent; what is more than nothing does not show as 0."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    return "<1 %" if 0 < ratio < 0.01 else f"{math.floor(ratio * 100 + 0.5)} %"


def changes(insertions: int | None, deletions: int | None) -> str:
    """+12 −3; '–' when there is no snapshot to compare, '±0' when nothing changed."""
    if insertions is None or deletions is None:
        return UNKNOWN
    return "±0" if insertions == deletions == 0 else f"+{tokens(insertions)} −{tokens(deletions)}"


def files(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count}f"


def clock(at: float) -> str:
    """Local wall-clock time of seconds since the epoch."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def sparkline(values: list[float | None], height: int = 1) -> list[str]:
    """One column per value in `height` rows, top row first, scaled to the largest. Unknown is blank; zero shows as a low line."""
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    eighths = [_eighths(value, top, height) for value in values]
    return ["".join(BARS[max(0, min(8, column - 8 * row))] for column in eighths) for row in reversed(range(height))]


def _eighths(value: float | None, top: float, height: int) -> int:
    if value is None:
        return 0
    return 1 if top <= 0 else max(1, round(value / top * 8 * height))
