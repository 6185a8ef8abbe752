"""Reads for the views: plain functions on a database, for `Store.read` and `open_readonly` alike.

What only a running station knows (rates, live text, waiting for capacity) is None here; the station fills it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import structs

from orchestrator.queue.token_counts import countable, countable_sql
from orchestrator.queue.transitions import task_row as stored_task
from orchestrator.store import Database, Row, row, rows
from orchestrator.task import ACTIVE, SATISFIED, UNSUCCESSFUL, WAITING, State, TaskSpec
from orchestrator.views import AttemptView, CheckOutput, CheckView, Failure, TaskDetail, TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTotals:
    """Sums over all attempts of the home. `cached_tokens` is None when no reply told. `max_parallel`: the most tasks in `running` at one moment."""

    input_tokens: int
    cached_tokens: int | None
    output_tokens: int
    max_parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    snapshot_commit: str
    at: float


_ROWS = """
    SELECT task.*, attempt.*,
           (SELECT reason FROM merge WHERE merge.task = task.id ORDER BY merge.id DESC LIMIT 1) AS merge_reason,
           (SELECT merge_commit FROM merge WHERE merge.task = task.id AND merge.state = 'landed') AS landed_commit
      FROM task LEFT JOIN attempt ON attempt.task = task.id AND attempt.number = task.attempt
"""


_WAITS = """
    (task.state IN ('queued', 'interrupted')
     AND (task.not_before IS NOT NULL OR EXISTS (SELECT 1 FROM dependency WHERE dependency.task = task.id)))
"""


def task_rows(db: Database, *, now: float, after: int = 0, states: Sequence[State] = ()) -> list[TaskRow]:
    """In the order of submission: tasks with an event after `after`, and all that are at work now (or only those in `states`, when given).

    `waiting_for` names the dependency or the back-off that a queued or interrupted task waits for, and is None when it only waits for capacity.
    It can change without an event of its own task, so tasks that wait for another task or for a back-off are always given.
    """
    if states:
        chosen, values = _any_of(states), tuple(states)
    else:
        chosen, values = f"(changed_seq > ? OR {_any_of(tuple(ACTIVE))} OR {_WAITS})", (after, *ACTIVE)
    found = rows(db, f"{_ROWS} WHERE {chosen} ORDER BY task.seq", values)
    return [_row(db, it, now) for it in found]


def task_row(db: Database, task: str, *, now: float) -> TaskRow:
    """UserError when there is no such task (with the nearest id as a hint)."""
    found = row(db, f"{_ROWS} WHERE task.id = ?", (task,))
    if found is None:
        stored_task(db, task)  # says what is wrong
        raise AssertionError(task)
    return _row(db, found, now)


def task_detail(db: Database, task: str, *, now: float) -> TaskDetail:
    """The same with prompt, attempts, checks with output (of the newest attempt), notes and comments. UserError when there is none."""
    spec = task_spec(db, task)
    summary = task_row(db, task, now=now)
    attempts = rows(db, "SELECT * FROM attempt WHERE task = ? ORDER BY number", (task,))
    return TaskDetail(
        row=summary,
        prompt=spec.prompt,
        repo=spec.repo,
        target_branch=spec.target_branch,
        limits=spec.limits,
        attempts_allowed=spec.attempts,
        attempts=[_attempt(it) for it in attempts],
        checks=_check_outputs(db, task, summary.attempt, spec),
        notes=_texts(db, task, "noted"),
        comments=_texts(db, task, "commented"),
    )


def task_spec(db: Database, task: str) -> TaskSpec:
    """As its newest attempt has it: `base_commit` is that attempt's. UserError when there is no such task."""
    spec, newest = _spec(stored_task(db, task)), attempt(db, task)
    return structs.replace(spec, base_commit=newest.base_commit) if newest else spec


def attempt(db: Database, task: str, number: int | None = None) -> AttemptView | None:
    """The attempt of that number, or the newest; None when there is none. UserError when there is no such task."""
    wanted = stored_task(db, task)["attempt"] if number is None else number
    found = row(db, "SELECT * FROM attempt WHERE task = ? AND number = ?", (task, wanted))
    return _attempt(found) if found else None


def queue_counts(db: Database) -> dict[str, int]:
    """Tasks per state; states without tasks are left out."""
    return {found["state"]: found["tasks"] for found in rows(db, "SELECT state, count(*) AS tasks FROM task GROUP BY state")}


def totals(db: Database) -> TokenTotals:
    columns = ", ".join(f"sum({countable_sql(f'{name}_tokens')}) AS {name}" for name in ("input", "cached", "output"))
    sums = rows(db, f"SELECT {columns} FROM attempt")[0]  # noqa: S608 - our own words only
    most = setting(db, "max_parallel")
    return TokenTotals(
        input_tokens=sums["input"] or 0,
        cached_tokens=sums["cached"],
        output_tokens=sums["output"] or 0,
        max_parallel=msgspec.json.decode(most, type=int) if most is not None else 0,
    )


def last_look(db: Database, task: str) -> Look | None:
    """None when nobody has looked yet."""
    found = row(db, "SELECT * FROM look WHERE task = ?", (task,))
    return Look(snapshot_commit=found["snapshot_commit"], at=found["at"]) if found else None


def next_start(db: Database, *, now: float) -> float | None:
    """When the next back-off ends (seconds since the epoch); None when no task is in back-off: the scheduler sleeps until then."""
    found = row(db, "SELECT min(not_before) FROM task WHERE state IN ('queued', 'interrupted') AND not_before > ?", (now,))
    return found[0] if found else None


def setting(db: Database, key: str) -> bytes | None:
    """The JSON that `Journal.remember` stored; None when it never did."""
    found = row(db, "SELECT value FROM setting WHERE key = ?", (key,))
    return str(found["value"]).encode() if found else None


def _any_of(states: Sequence[str]) -> str:
    return f"task.state IN ({', '.join('?' * len(states))})"


def _spec(found: Row) -> TaskSpec:
    return msgspec.json.decode(found["spec"], type=TaskSpec)


def _row(db: Database, found: Row, now: float) -> TaskRow:
    spec = _spec(found)
    begun: int = found["attempt"]
    return TaskRow(
        id=spec.id,
        title=spec.title,
        kind=spec.kind,
        state=found["state"],
        state_age_s=max(0.0, now - found["state_at"]),
        waiting_for=_waiting_for(db, found, now),
        attempt=begun,
        step=found["step"],
        agent=spec.agent,
        workspace=found["workspace"],
        branch=found["branch"],
        base_commit=found["base_commit"] or spec.base_commit,
        snapshot_commit=found["snapshot_commit"],
        input_tokens=countable(found["input_tokens"]),
        cached_tokens=countable(found["cached_tokens"]),
        output_tokens=countable(found["output_tokens"]),
        tokens_per_s=None,
        files_changed=found["files_changed"],
        insertions=found["insertions"],
        deletions=found["deletions"],
        checks=_checks(db, spec, begun),
        failure=_failure(found),
        activity=found["activity"],
        last_tool=found["last_tool"],
        priority=spec.priority,
        approved=found["approved_commit"] is not None,
        after=list(spec.after),
        merged_commit=found["landed_commit"],
        changed_seq=found["changed_seq"],
    )


def _waiting_for(db: Database, found: Row, now: float) -> str | None:
    if found["state"] not in WAITING:
        return None
    if found["state"] == "queued":
        needed = rows(
            db,
            "SELECT id, state FROM task JOIN dependency ON dependency.needs = task.id WHERE dependency.task = ? ORDER BY seq",
            (found["id"],),
        )
        unmet = [it for it in needed if it["state"] not in SATISFIED]
        if unmet:
            ended = next((it for it in unmet if it["state"] in UNSUCCESSFUL), None)
            return f"task {ended['id']}, which is {ended['state']}" if ended else f"task {unmet[0]['id']} ({unmet[0]['state']})"
    if found["not_before"] is not None and found["not_before"] > now:
        reason = _last_reason(db, found["id"])
        return f"its back-off, {found['not_before'] - now:.0f} s more{f', after {reason}' if reason else ''}"
    return None


def _last_reason(db: Database, task: str) -> str:
    """Why the task changed its state last, '' when that was not said."""
    sql = "SELECT fact ->> 'reason' AS reason FROM event WHERE task = ? AND type = 'state-changed' ORDER BY seq DESC LIMIT 1"
    found = row(db, sql, (task,))
    return (found["reason"] or "") if found else ""


def _failure(found: Row) -> Failure | None:
    """Why an unsuccessful task is where it is; None for tasks that may still succeed, and for a person's own decisions."""
    if found["state"] == "conflicted":
        return Failure(kind="conflict", message=found["merge_reason"] or "")
    if found["state"] in UNSUCCESSFUL and found["failure_kind"] is not None:
        return Failure(kind=found["failure_kind"], message=found["failure_message"] or "")
    return None


def _checks(db: Database, spec: TaskSpec, number: int) -> list[CheckView]:
    if not spec.checks:
        return []
    ran = {it["command"]: it for it in rows(db, "SELECT * FROM check_result WHERE task = ? AND attempt = ?", (spec.id, number))}
    return [
        CheckView(command=command, exit_code=ran[command]["exit_code"], seconds=ran[command]["seconds"])
        if command in ran
        else CheckView(command=command, exit_code=None, seconds=None)
        for command in spec.checks
    ]


def _check_outputs(db: Database, task: str, number: int, spec: TaskSpec) -> list[CheckOutput]:
    ran = {it["command"]: it for it in rows(db, "SELECT * FROM check_result WHERE task = ? AND attempt = ?", (task, number))}
    return [
        CheckOutput(command=command, exit_code=ran[command]["exit_code"], seconds=ran[command]["seconds"], output=ran[command]["output"])
        for command in spec.checks
        if command in ran
    ]


def _attempt(found: Row) -> AttemptView:
    failure = Failure(kind=found["failure_kind"], message=found["failure_message"] or "") if found["failure_kind"] else None
    return AttemptView(
        number=found["number"],
        base_commit=found["base_commit"],
        workspace=found["workspace"],
        branch=found["branch"],
        snapshot_commit=found["snapshot_commit"],
        started_at=found["started_at"],
        ended_at=found["ended_at"],
        outcome=found["outcome"],
        failure=failure,
        resumptions=found["resumptions"],
        steps=found["steps"],
        input_tokens=countable(found["input_tokens"]),
        output_tokens=countable(found["output_tokens"]),
    )


def _texts(db: Database, task: str, kind: str) -> list[str]:
    sql = "SELECT fact ->> 'text' AS text FROM event WHERE task = ? AND type = ? ORDER BY seq"
    return [found["text"] for found in rows(db, sql, (task, kind))]
