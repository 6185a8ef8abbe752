# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""The header of every screen as lines: how fast, how many, what the engine says, and how old all that is. Pure."""

from __future__ import annotations

from orchestrator.views import EngineView
from tui.foreign import one_line
from tui.format import UNKNOWN, age, clock, grouped, percent, rate, sparkline, tokens
from tui.line import Line, Role, Span, crop, fit, line, width_of
from tui.state import STALE_S, Model, Only, chart, counts

CHART_S = 300.0
SPELT_OUT_FROM, NAMED_FROM = 100, 112
"""Cells from which the low header has room for whole words, and for the model's name."""
TALL = 4
"""Rows of the header with large numerals; it has 2 otherwise."""

_GLYPHS: dict[str, tuple[str, str, str]] = {
    "0": ("█▀█", "█ █", "▀▀▀"),
    "1": ("▀█ ", " █ ", "▀▀▀"),
    "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", "▀▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"),
    "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"),
    "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"),
    "k": ("█ █", "█▀▄", "▀ ▀"),
    "–": ("   ", "▀▀▀", "   "),
}
_DIGITS_WIDTH = 20


def header_lines(model: Model, now: float, *, width: int, tall: bool, only: Only | None = None) -> list[Line]:
    """`only` is the filter at work on the screen below; None where there is no list to filter."""
    rows = _tall(model, now, width) if tall else [_short(model, now, width)]
    return [crop(row, width) for row in (*rows, _counts_line(model, now, only, width, tall=tall))]


def banner_lines(model: Model) -> list[Line]:
    """What must be seen on every screen, one line each; empty when all is well."""
    lines: list[Line] = []
    if model.lost is not None:
        lines.append(line(Span(f" ✘ station not answering since {clock(model.lost.clock)}, trying again ", "alarm")))
    if model.station is not None and model.station.warning:
        lines.append(line(Span(f" ⚠ {one_line(model.station.warning)} ", "warn")))
    return lines


def big(text: str) -> tuple[str, str, str]:
    """Numerals of three rows. A character that has no large form is left out."""
    glyphs = [_GLYPHS[character] for character in text if character in _GLYPHS]
    return (" ".join(g[0] for g in glyphs), " ".join(g[1] for g in glyphs), " ".join(g[2] for g in glyphs))


def _large_rate(per_s: float | None) -> str:
    if per_s is None:
        return UNKNOWN
    return f"{per_s:.0f}" if per_s < 99_999.5 else f"{per_s / 1000:.0f}k"


def _tall(model: Model, now: float, width: int) -> list[Line]:
    stale = model.stale(now)
    totals = model.totals
    numerals = big(_large_rate(totals.tokens_per_s if totals else None))
    prompt = rate(totals.input_tokens_per_s if totals else None)
    age_word = _age_word(model, now)
    labels = ("tok/s out", f"{prompt} in", age_word or "last 5 min")
    columns = _facts(model, now)
    facts_width = sum(max(map(width_of, column)) + 3 for column in columns)
    chart_width = min(60, width - _DIGITS_WIDTH - 12 - facts_width - 3)
    values = chart(model.samples, now, columns=chart_width, span_s=CHART_S)
    graph = sparkline(values, 3) if chart_width >= 10 else ["", "", ""]
    rows: list[Line] = []
    for i in range(3):
        spans: list[Span] = [Span(" "), Span(fit(numerals[i], _DIGITS_WIDTH), "dim" if stale else "accent")]
        spans.append(Span(fit(labels[i], 11), "warn" if i == 2 and age_word else ("dim", "dim", "gutter")[i]))
        spans += [Span(graph[i], "gutter" if stale else "chart"), Span("   ")]
        for column in columns:
            spans += [*_padded(column[i], max(map(width_of, column))), Span("   ")]
        rows.append(tuple(spans))
    return rows


def _facts(model: Model, now: float) -> list[list[Line]]:
    """Two columns of three facts: the agents' side and the engine's side."""
    stale = model.stale(now)
    totals, role = model.totals, _number(stale)
    ours = [
        line(Span("agents       ", "dim"), Span(_agents(model), role)),
        line(Span("tokens       ", "dim"), Span(f"{tokens(totals.output_tokens if totals else None)} out", role)),
        line(Span("unattributed ", "dim"), Span(grouped(totals.unattributed_tokens if totals else None), role)),
    ]
    engine = model.engine
    if engine is None:
        return [ours, [line(Span("engine       ", "dim"), Span("unknown" if model.station is None else "none", "warn")), (), ()]]
    old = stale or _engine_stale(model, now)
    theirs = [
        line(*_health(engine, old), *_simulated(engine), *_engine_age(model, now)),
        line(Span(one_line(engine.model or "model unknown", limit=36), "dim")),
        line(*_load(engine, old)),
    ]
    return [ours, theirs]


def _short(model: Model, now: float, width: int) -> Line:
    stale = model.stale(now)
    totals = model.totals
    spans: list[Span] = [
        Span(f" {_large_rate(totals.tokens_per_s if totals else None)}", "dim" if stale else "accent"),
        Span(" tok/s ", "dim"),
    ]
    if word := _age_word(model, now):
        spans.append(Span(f"{word} ", "warn"))
    engine = model.engine
    tail: list[Span] = [Span("  ")]
    if engine is None:
        tail.append(Span("engine unknown" if model.station is None else "no engine", "warn"))
    else:
        old = stale or _engine_stale(model, now)
        tail += [*_health(engine, old), Span(" "), *_simulated(engine, short=width < SPELT_OUT_FROM), *_engine_age(model, now), Span(" ")]
        if width >= NAMED_FROM and engine.model:
            tail.append(Span(f"{one_line(engine.model, limit=36)}  ", "dim"))
        tail += _load(engine, old, short=width < 110)
    room = width - width_of(tuple(spans)) - width_of(tuple(tail)) - 1
    if room >= 8:
        graph = sparkline(chart(model.samples, now, columns=min(40, room), span_s=CHART_S))[0]
        spans.append(Span(graph, "gutter" if stale else "chart"))
    return (*spans, *tail)


def _counts_line(model: Model, now: float, only: Only | None, width: int, *, tall: bool) -> Line:
    found = counts(model.queue)
    if found is None:
        return line(Span(" queue unknown", "dim"))
    numbers: list[tuple[Only, str, int, Role]] = [
        ("waiting", "waiting", found.waiting, "strong"),
        ("working", "working", found.working, "busy"),
        ("review", "to review", found.review, "accent"),
        ("failed", "failed", found.failed, "bad"),
        ("done", "done", found.done, "good"),
    ]
    stale = model.stale(now)
    spans: list[Span] = [Span(" ")]
    if only is not None and width >= 96:
        spans += _tab("0", "all", str(found.total), "strong", chosen=only == "all", stale=stale)
    for i, (name, word, count, role) in enumerate(numbers, 1):
        text = _agents(model) if name == "working" and not tall else str(count)
        spans += _tab(str(i) if only is not None else "", word, text, role if count else "dim", chosen=only == name, stale=stale)
    totals = model.totals
    if totals is not None and not tall:
        spans += [Span(" unattributed " if width >= 90 else " unattr. ", "dim"), Span(tokens(totals.unattributed_tokens), _number(stale))]
    return tuple(spans)


def _tab(key: str, word: str, count: str, role: Role, *, chosen: bool, stale: bool) -> list[Span]:
    if chosen:
        return [Span(f"[{key} {word} {count}]", "strong")]
    number = Span(count, "dim" if stale else role)
    return [Span(" "), Span(f"{key} " if key else "", "gutter"), Span(f"{word} ", "dim"), number, Span(" ")]


def _agents(model: Model) -> str:
    found = counts(model.queue)
    if found is None or model.station is None:
        return UNKNOWN
    return f"{found.working}/{model.station.agents}"


def _number(stale: bool) -> Role:
    return "dim" if stale else "plain"


def _age_word(model: Model, now: float) -> str:
    age_s = model.age_s(now)
    if age_s is None:
        return "unknown"
    return f"{age(age_s)} old" if age_s > STALE_S else ""


def _engine_age_s(model: Model, now: float) -> float | None:
    if model.engine is None or model.engine.age_s is None:
        return None
    return model.engine.age_s + (model.age_s(now) or 0.0)


def _engine_stale(model: Model, now: float) -> bool:
    age_s = _engine_age_s(model, now)
    return age_s is None or age_s > STALE_S


def _engine_age(model: Model, now: float) -> list[Span]:
    age_s = _engine_age_s(model, now)
    if age_s is None or age_s <= STALE_S or model.stale(now):
        return []
    return [Span(f" {age(age_s)} old", "warn")]


def _health(engine: EngineView, old: bool) -> list[Span]:
    if engine.healthy:
        return [Span("● ", "dim" if old else "good"), Span("engine ok", _number(old))]
    return [Span("✘ ", "bad"), Span(f"engine: {one_line(engine.message, limit=40)}", "bad")]


def _simulated(engine: EngineView, *, short: bool = False) -> list[Span]:
    if not engine.simulated:
        return []
    return [Span(" "), Span(" SIMULATED " if short else " SIMULATED ENGINE ", "badge")]


def _load(engine: EngineView, old: bool, *, short: bool = False) -> list[Span]:
    """What runs and waits in the engine, and how full its cache is."""
    role = _number(old)
    waiting: Role = "warn" if engine.waiting and not old else role
    run, wait = ("run", "wait") if short else ("running", "waiting")
    return [
        Span(_count(engine.running), role),
        Span(f" {run}  ", "dim"),
        Span(_count(engine.waiting), waiting),
        Span(f" {wait}  KV ", "dim"),
        Span(percent(engine.kv_cache_usage), "warn" if (engine.kv_cache_usage or 0) > 0.9 and not old else role),
    ]


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _padded(spans: Line, width: int) -> Line:
    return (*spans, Span(" " * (width - width_of(spans))))
