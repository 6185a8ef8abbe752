"""A station without a station: the same calls on rows that a test (or a person trying out a screen) puts in.

It follows the real one's rules as far as the dashboard sees them: sequence numbers, refusals with a hint, silence while it is down.
One suite holds both to them: `tests/contract/test_station_client.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from agents.messages import Assistant, Message
from orchestrator.errors import StationDown, UserError
from orchestrator.queue.decisions import way_on
from orchestrator.task import ACTIVE, ENDED, REVIEWABLE, STATES, TRANSITIONS, Limits, State
from orchestrator.views import (
    AttemptView,
    CheckOutput,
    DiffDocument,
    EngineView,
    Failure,
    FileView,
    LogDocument,
    MergeView,
    Snapshot,
    StationView,
    TaskDetail,
    TaskRow,
    Totals,
)

T = TypeVar("T")

MERGED = "c0ffee" * 6 + "c0ff"
"""The commit of every merge that lands."""


@dataclass(kw_only=True)
class FakeTask:
    """All that is known of one task."""

    row: TaskRow
    prompt: str = ""
    messages: list[Message] = field(default_factory=list[Message])
    checks: list[CheckOutput] = field(default_factory=list[CheckOutput])
    files: list[FileView] = field(default_factory=list[FileView])
    attempts: list[AttemptView] = field(default_factory=list[AttemptView])
    notes: list[str] = field(default_factory=list[str])
    comments: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])
    target_moved: bool = False
    live_text: str | None = None
    looked_at: str | None = None
    """The snapshot that a person saw last."""
    since: float = 0.0
    """When it came into its state, on the station's clock."""


class FakeStation:
    """Thread-safe, like the client that it stands for. `calls` lists the commands in the order in which they came.

    `clock` gives monotonic seconds: the ages of states count on by it.
    """

    def __init__(
        self,
        *,
        agents: int = 4,
        engine: EngineView | None = None,
        warning: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.engine = engine
        self.tokens_per_s: float | None = None
        self.input_tokens_per_s: float | None = None
        self.unattributed_tokens: int | None = None
        self._clock = clock
        self._lock = threading.RLock()
        self._tasks: dict[str, FakeTask] = {}
        self._seq = 0
        self._up = threading.Event()
        self._up.set()
        self._held = threading.Event()
        self._held.set()
        self._station = StationView(pid=1, version="0.1.0", home="/tmp/fake", started_at=0.0, agents=agents, warning=warning)  # noqa: S108 (a name, not a file)

    def put(self, task: FakeTask) -> None:
        """Add a task, or replace it: an event of its own either way."""
        with self._lock:
            self._seq += 1
            task.row = msgspec.structs.replace(task.row, changed_seq=self._seq)
            task.since = self._clock() - task.row.state_age_s
            self._tasks[task.row.id] = task

    def change(self, task: str, **fields: object) -> TaskRow:
        """Set fields of a row. Another state begins at age 0."""
        with self._lock:
            known = self._tasks[task]
            moved = fields.get("state", known.row.state) != known.row.state
            known.row = msgspec.structs.replace(self._row(known), **({"state_age_s": 0.0} if moved else {}), **fields)
            self.put(known)
            return known.row

    def _row(self, task: FakeTask) -> TaskRow:
        """Its row as of now."""
        return msgspec.structs.replace(task.row, state_age_s=self._clock() - task.since)

    def write(self, task: str, live_text: str) -> None:
        """What the model writes at this moment; no event."""
        with self._lock:
            self._tasks[task].live_text = live_text

    def warn(self, warning: str) -> None:
        """What the station says must be seen on every screen."""
        with self._lock:
            self._station = msgspec.structs.replace(self._station, warning=warning)

    def go_down(self) -> None:
        self._up.clear()

    def come_back(self, *, pid: int | None = None) -> None:
        """Answer again; with another `pid`, as another process."""
        with self._lock:
            if pid is not None:
                self._station = msgspec.structs.replace(self._station, pid=pid)
        self._up.set()

    def hold(self) -> None:
        """Take every call and answer none of them until `release`."""
        self._held.clear()

    def release(self) -> None:
        self._held.set()

    def _answering(self) -> None:
        self._held.wait()
        if not self._up.is_set():
            raise StationDown("no station is running for /tmp/fake", hint="start it with `stationmaster up`")

    def _known(self, task: str) -> FakeTask:
        if task not in self._tasks:
            raise UserError(f"there is no task {task}", hint="`stationmaster list` shows them all")
        return self._tasks[task]

    def snapshot(self, after: int = 0) -> Snapshot:
        self._answering()
        with self._lock:
            rows = [self._row(task) for task in self._tasks.values()]
            queue = {state: sum(row.state == state for row in rows) for state in STATES}
            output = sum(row.output_tokens or 0 for row in rows)
            totals = Totals(
                input_tokens=sum(row.input_tokens or 0 for row in rows),
                cached_tokens=None,
                output_tokens=output,
                server_output_tokens=None if self.unattributed_tokens is None else output + self.unattributed_tokens,
                unattributed_tokens=self.unattributed_tokens,
                tokens_per_s=self.tokens_per_s,
                input_tokens_per_s=self.input_tokens_per_s,
                max_parallel=queue["running"],
            )
            return Snapshot(
                seq=self._seq,
                at=time.time(),
                station=self._station,
                engine=self.engine,
                queue={state: count for state, count in queue.items() if count},
                totals=totals,
                tasks=[row for row in rows if row.changed_seq > after or row.state in ACTIVE],
            )

    def task(self, task: str) -> TaskDetail:
        self._answering()
        with self._lock:
            known = self._known(task)
            return TaskDetail(
                row=self._row(known),
                prompt=known.prompt,
                repo="/srv/ledger",
                target_branch="main",
                limits=Limits(),
                attempts_allowed=2,
                attempts=list(known.attempts),
                checks=list(known.checks),
                notes=list(known.notes),
                comments=list(known.comments),
                live_text=known.live_text,
            )

    def log(self, task: str, *, attempt: int | None = None, step: int | None = None) -> LogDocument:
        self._answering()
        with self._lock:
            known = self._known(task)
            number = known.row.attempt if attempt is None else attempt
            if known.row.attempt == 0:
                raise UserError(f"task {task} has no attempt yet")
            if not 1 <= number <= known.row.attempt:
                raise UserError(f"task {task} has no attempt {number}", hint=f"the newest is {known.row.attempt}")
            messages = known.messages if step is None else _step(known.messages, step)
            if step is not None and not messages:
                raise UserError(f"attempt {number} of task {task} has no step {step}")
            return LogDocument(task=task, attempt=number, messages=[msgspec.Raw(msgspec.json.encode(message)) for message in messages])

    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument:
        self._answering()
        with self._lock:
            known = self._known(task)
            if known.row.snapshot_commit is None:
                raise UserError(f"task {task} has no snapshot yet", hint=f"`stationmaster show {task}` tells what it does")
            seen = since_last_look and known.looked_at == known.row.snapshot_commit
            return DiffDocument(
                task=task,
                base_commit=known.row.base_commit,
                snapshot_commit=known.row.snapshot_commit,
                target="main",
                target_moved=known.target_moved,
                conflicts=list(known.conflicts),
                files=[] if seen else list(known.files),
            )

    def cancel(self, task: str) -> TaskRow:
        def cancelled(known: FakeTask) -> TaskRow:
            _expect(known.row, "cancelled", "cancel")
            return self._move(known, "cancelled")

        return self._command(cancelled, "cancel", task)

    def retry(self, task: str, comment: str = "") -> TaskRow:
        def retried(known: FakeTask) -> TaskRow:
            if known.row.state not in ENDED:
                raise UserError(f"task {task} is {known.row.state}, it has not ended", hint=way_on(task, known.row.state))
            _expect(known.row, "queued", "retry")
            return self._move(known, "queued", comment)

        return self._command(retried, "retry", task, comment)

    def reject(self, task: str, comment: str = "") -> TaskRow:
        def rejected(known: FakeTask) -> TaskRow:
            _expect(known.row, "rejected", "reject")
            return self._move(known, "queued" if comment else "rejected", comment)

        return self._command(rejected, "reject", task, comment)

    def approve(self, task: str) -> TaskRow:
        def approved(known: FakeTask) -> TaskRow:
            if known.row.state not in REVIEWABLE:
                raise UserError(f"task {task} is {known.row.state}, not waiting for review", hint=way_on(task, known.row.state))
            if known.row.snapshot_commit is None:
                raise UserError(f"task {task} has no snapshot to approve", hint=f"`stationmaster retry {task}` makes a new attempt")
            return self.change(task, approved=True, state="in-review")

        return self._command(approved, "approve", task)

    def merge(self, task: str) -> MergeView:
        def merged(known: FakeTask) -> MergeView:
            row = known.row
            if row.state == "merged":
                raise UserError(f"task {task} is merged already, as {row.merged_commit}", hint=way_on(task, row.state))
            if "merging" not in TRANSITIONS[row.state]:
                raise UserError(f"task {task} is {row.state} and cannot be merged", hint=way_on(task, row.state))
            if not row.approved:
                hint = f"look at `stationmaster diff {task}`, then `stationmaster approve {task}`"
                raise UserError(f"task {task} is not approved", hint=hint)
            if known.conflicts:
                self.change(task, state="conflicted", failure=Failure(kind="conflict", message="conflicts"))
                said, paths = "conflicts with main: nothing was changed", list(known.conflicts)
                return MergeView(task=task, state="conflicted", target="main", commit=None, message=said, conflicts=paths)
            self.change(task, state="merged", merged_commit=MERGED, failure=None)
            return MergeView(task=task, state="merged", target="main", commit=MERGED, message=f"landed on main as {MERGED[:12]}")

        return self._command(merged, "merge", task)

    def say(self, task: str, text: str) -> TaskRow:
        def said(known: FakeTask) -> TaskRow:
            if known.row.state in ENDED or known.row.state == "merging":
                hint = f'`stationmaster retry {task} --comment "…"` starts a new attempt that hears it'
                raise UserError(f"task {task} is {known.row.state}: no agent works on it", hint=hint)
            if not text.strip():
                raise UserError("there is nothing to say", hint="give the agent a text")
            known.comments.append(text)
            return self.change(task)

        return self._command(said, "say", task, text)

    def look(self, task: str) -> TaskRow:
        def looked(known: FakeTask) -> TaskRow:
            if known.row.snapshot_commit is None:
                return self._row(known)
            known.looked_at = known.row.snapshot_commit
            return self.change(task, state="in-review") if known.row.state == "verified" else self._row(known)

        return self._command(looked, "look", task)

    def _move(self, known: FakeTask, state: State, comment: str = "") -> TaskRow:
        if comment.strip():
            known.comments.append(comment)
        return self.change(known.row.id, state=state, approved=False)

    def _command(self, act: Callable[[FakeTask], T], verb: str, task: str, *words: str) -> T:
        self._answering()
        with self._lock:
            self.calls.append((verb, task, *words))
            return act(self._known(task))


def _expect(row: TaskRow, new: State, command: str) -> None:
    if new not in TRANSITIONS[row.state]:
        raise UserError(f"task {row.id} is {row.state}: nothing to {command}", hint=way_on(row.id, row.state))


def _step(messages: list[Message], step: int) -> list[Message]:
    """A reply with what followed it, up to the next; steps count from 1."""
    starts = [i for i, message in enumerate(messages) if isinstance(message, Assistant)] + [len(messages)]
    return messages[starts[step - 1] : starts[step]] if 0 < step < len(starts) else []
