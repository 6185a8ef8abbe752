"""The document with which `run --wait --json` and `demo --json` end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from orchestrator.cli.watch import Watch
from orchestrator.task import VERIFIED, Kind
from orchestrator.views import TaskRow


class KindResult(msgspec.Struct, frozen=True, kw_only=True):
    tasks: int
    verified: int
    failed: int
    output_tokens: int | None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens_per_s` is output tokens per second of wall-clock, from the first task queued to the last one ended.

    `server_output_tokens` is the engine's own count for the same time: None when it has none, or when other tasks of the home
    were at work too, so that it cannot be told apart. `output_tokens` is None when a reply came without usage.
    """

    tasks: int
    verified: int
    failed: int
    agents: int
    max_parallel: int
    wall_s: float | None
    output_tokens: int | None
    tokens_per_s: float | None
    server_output_tokens: int | None
    unattributed_tokens: int | None
    diffs: int
    by_kind: dict[Kind, KindResult]
    home: str
    repo: str
    hub: str | None
    # added freely
    not_run: dict[str, str] = {}
    """Tasks that never started, with the dependency that kept them from it; they count as failed."""


def result_of(watch: Watch, *, home: Path, repo: Path, hub: Path | None) -> RunResult:
    """The tasks of `watch`, as they stand now."""
    tally = watch.tally
    rows = [watch.rows[task] for task in watch.tasks]
    verified = [row for row in rows if row.state in VERIFIED]
    tokens = sum(tally.tokens.values()) if tally.uncounted == 0 else None
    wall_s = None if tally.began_at is None or tally.ended_at is None else tally.ended_at - tally.began_at
    server = _server_tokens(watch)
    return RunResult(
        tasks=len(rows),
        verified=len(verified),
        failed=len(rows) - len(verified),
        agents=watch.now.station.agents,
        max_parallel=tally.max_parallel,
        wall_s=None if wall_s is None else round(wall_s, 3),
        output_tokens=tokens,
        tokens_per_s=round(tokens / wall_s, 1) if tokens is not None and wall_s else None,
        server_output_tokens=server,
        unattributed_tokens=None if server is None or tokens is None else server - tokens,
        diffs=sum(bool(row.files_changed) for row in verified),
        by_kind=_by_kind(rows, watch),
        home=str(home),
        repo=str(repo),
        hub=None if hub is None else str(hub),
        not_run={task: before for task in watch.tasks if (before := watch.cannot_start(task))},
    )


def _server_tokens(watch: Watch) -> int | None:
    before, now = watch.before.totals.server_output_tokens, watch.totals.server_output_tokens
    return None if now is None or watch.tally.others else now - (before or 0)


def _by_kind(rows: list[TaskRow], watch: Watch) -> dict[Kind, KindResult]:
    found: dict[Kind, KindResult] = {}
    kinds: set[Kind] = {row.kind for row in rows}
    for kind in sorted(kinds):
        mine = [row for row in rows if row.kind == kind]
        good = sum(row.state in VERIFIED for row in mine)
        tokens = sum(watch.tally.tokens.get(row.id, 0) for row in mine) if watch.tally.uncounted == 0 else None
        found[kind] = KindResult(tasks=len(mine), verified=good, failed=len(mine) - good, output_tokens=tokens)
    return found
