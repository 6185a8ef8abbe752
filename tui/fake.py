"""A station without a station: the same calls on rows that a test (or a person trying out a screen) puts in.

It follows the real one's rules as far as the dashboard sees them: sequence numbers, refusals with a hint, silence while it is down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from agents.messages import Message
from orchestrator.errors import StationDown, UserError
from orchestrator.task import REVIEWABLE, STATES, TRANSITIONS, Limits, State
from orchestrator.views import (
    AttemptView,
    CheckOutput,
    DiffDocument,
    EngineView,
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


class FakeStation:
    """Thread-safe, like the client that it stands for. `calls` lists the commands in the order in which they came."""

    def __init__(self, *, agents: int = 4, engine: EngineView | None = None, warning: str = "") -> None:
        self.calls: list[tuple[str, ...]] = []
        self.engine = engine
        self.tokens_per_s: float | None = None
        self.input_tokens_per_s: float | None = None
        self.unattributed_tokens: int | None = None
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
            self._tasks[task.row.id] = task

    def change(self, task: str, **fields: object) -> TaskRow:
        """Set fields of a row."""
        with self._lock:
            known = self._tasks[task]
            known.row = msgspec.structs.replace(known.row, **fields)
            self.put(known)
            return known.row

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
            raise UserError(f"no task {task}", hint="`stationmaster list` shows them")
        return self._tasks[task]

    def snapshot(self, after: int = 0) -> Snapshot:
        self._answering()
        with self._lock:
            rows = [task.row for task in self._tasks.values()]
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
                tasks=[row for row in rows if row.changed_seq > after],
            )

    def task(self, task: str) -> TaskDetail:
        self._answering()
        with self._lock:
            known = self._known(task)
            return TaskDetail(
                row=known.row,
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
            raw = [msgspec.Raw(msgspec.json.encode(message)) for message in known.messages]
            return LogDocument(task=task, attempt=attempt or known.row.attempt, messages=raw)

    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument:
        self._answering()
        with self._lock:
            known = self._known(task)
            if known.row.snapshot_commit is None:
                raise UserError(f"{task} has no snapshot yet", hint="its first step makes one")
            return DiffDocument(
                task=task,
                base_commit=known.row.base_commit,
                snapshot_commit=known.row.snapshot_commit,
                target="main",
                target_moved=known.target_moved,
                conflicts=list(known.conflicts),
                files=list(known.files),
            )

    def cancel(self, task: str) -> TaskRow:
        return self._move("cancel", task, "cancelled")

    def retry(self, task: str, comment: str = "") -> TaskRow:
        return self._move("retry", task, "queued", comment)

    def reject(self, task: str, comment: str = "") -> TaskRow:
        return self._move("reject", task, "queued" if comment else "rejected", comment)

    def approve(self, task: str) -> TaskRow:
        def approved(known: FakeTask) -> TaskRow:
            if known.row.state not in REVIEWABLE:
                raise UserError(f"{task} is {known.row.state}, not to be reviewed", hint="only verified tasks can be approved")
            return self.change(task, approved=True, state="in-review")

        return self._command(approved, "approve", task)

    def merge(self, task: str) -> MergeView:
        def merged(known: FakeTask) -> MergeView:
            if known.conflicts:
                self.change(task, state="conflicted", state_age_s=0.0)
                return MergeView(task=task, state="conflicted", target="main", commit=None, message="conflicts", conflicts=known.conflicts)
            if "merging" not in TRANSITIONS[known.row.state]:
                raise UserError(f"{task} is {known.row.state}, it cannot be merged", hint="approve it first")
            self.change(task, state="merged", state_age_s=0.0, merged_commit="c0ffee" * 6 + "c0ff")
            return MergeView(task=task, state="merged", target="main", commit="c0ffee" * 6 + "c0ff", message="landed")

        return self._command(merged, "merge", task)

    def say(self, task: str, text: str) -> TaskRow:
        def said(known: FakeTask) -> TaskRow:
            known.comments.append(text)
            return self.change(task)

        return self._command(said, "say", task, text)

    def look(self, task: str) -> TaskRow:
        def looked(known: FakeTask) -> TaskRow:
            return self.change(task, state="in-review") if known.row.state == "verified" else known.row

        return self._command(looked, "look", task)

    def _move(self, verb: str, task: str, state: State, comment: str = "") -> TaskRow:
        def moved(known: FakeTask) -> TaskRow:
            if state not in TRANSITIONS[known.row.state]:
                raise UserError(f"cannot {verb} {task}: it is {known.row.state}", hint=f"from there it can go to {_names(known.row.state)}")
            if comment:
                known.comments.append(comment)
            return self.change(task, state=state, state_age_s=0.0, approved=False)

        return self._command(moved, verb, task, comment)

    def _command(self, act: Callable[[FakeTask], T], verb: str, task: str, *words: str) -> T:
        self._answering()
        with self._lock:
            self.calls.append((verb, task, *words))
            return act(self._known(task))


def _names(state: State) -> str:
    return ", ".join(sorted(TRANSITIONS[state])) or "nowhere"
