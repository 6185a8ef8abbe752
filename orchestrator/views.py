"""What the station tells its clients: the JSON documents of the API and of the command line.

Everything here is derived (from the store, the hubs and the engine's metrics), never stored. Unknown is None, never 0.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.task import Activity, FailureKind, Kind, Limits, State


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """`exit_code` and `seconds` are None when the check has not run (or ran out of time: then `seconds` is known)."""

    command: str
    exit_code: int | None
    seconds: float | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    kind: FailureKind
    message: str


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task in `list --json`. The fields up to `failure` are the command line's contract."""

    id: str
    title: str
    kind: Kind
    state: State
    state_age_s: float
    waiting_for: str | None
    attempt: int
    step: int | None
    agent: str
    workspace: str | None
    branch: str | None
    base_commit: str
    snapshot_commit: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    tokens_per_s: float | None
    """Output tokens of the attempt in the last few seconds, per second; None when it does not stream or is not live."""
    files_changed: int | None
    insertions: int | None
    deletions: int | None
    checks: list[CheckView]
    failure: Failure | None
    # added freely
    activity: Activity | None = None
    last_tool: str | None = None
    """The last tool call in one short line, with a leading '✗ ' when it failed."""
    priority: int = 0
    approved: bool = False
    after: list[str] = []
    merged_commit: str | None = None
    changed_seq: int = 0
    """The last event that concerns the task."""


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    base_commit: str
    workspace: str | None
    branch: str | None
    snapshot_commit: str | None
    started_at: float
    ended_at: float | None
    outcome: str | None
    failure: Failure | None
    resumptions: int
    steps: int
    input_tokens: int | None
    output_tokens: int | None


class CheckOutput(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    exit_code: int | None
    seconds: float | None
    output: str


class TaskDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One task in `show --json`."""

    row: TaskRow
    prompt: str
    repo: str
    target_branch: str | None
    limits: Limits
    attempts_allowed: int
    attempts: list[AttemptView]
    checks: list[CheckOutput]
    notes: list[str]
    comments: list[str]
    live_text: str | None = None
    """The tail of what the model writes at this moment."""


class EngineView(msgspec.Struct, frozen=True, kw_only=True):
    """The engine as its own metrics tell, `age_s` seconds ago."""

    url: str
    simulated: bool
    """There is no model behind it: it says so itself."""
    model: str | None
    healthy: bool
    message: str
    """One line: 'ok', or what is wrong."""
    age_s: float | None
    max_model_len: int | None = None
    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None
    """0 to 1."""
    output_tokens: int | None = None
    """The engine's own counter, less what it showed when this home began to use it."""
    child: bool = False
    """The station's own child (`--engine sim`)."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over all attempts of this home since it began. Rates are over the last few seconds of wall-clock."""

    input_tokens: int
    cached_tokens: int | None
    output_tokens: int
    server_output_tokens: int | None
    unattributed_tokens: int | None
    """The engine's count less the agents'; None when the engine has no counter."""
    tokens_per_s: float | None
    input_tokens_per_s: float | None
    max_parallel: int
    """The most tasks that were in `running` at one moment."""


class StationView(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    home: str
    started_at: float
    agents: int
    """The limit on tasks at work at once."""
    warning: str = ""
    """Something a person must see on every screen ('' when nothing): no sandbox, disk low."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks` holds the rows that changed after the sequence number that the client gave, and all that are at work now."""

    seq: int
    at: float
    station: StationView
    engine: EngineView | None
    queue: dict[str, int]
    totals: Totals
    tasks: list[TaskRow]


FileStatus = Literal["added", "deleted", "modified", "renamed", "copied", "type-changed"]


class HunkView(msgspec.Struct, frozen=True, kw_only=True):
    """`lines` carry their leading ' ', '+', '-' or '\\'. Bytes that are no UTF-8 show as \\xNN."""

    id: str
    header: str
    lines: list[str]


class FileView(msgspec.Struct, frozen=True, kw_only=True):
    """Insertions and deletions are None for a binary file. `hunks` is empty when there is no text to show (`note` says why)."""

    path: str
    old_path: str | None
    status: FileStatus
    old_mode: str | None
    new_mode: str | None
    binary: bool
    insertions: int | None
    deletions: int | None
    hunks: list[HunkView]
    domain: None = None
    note: str = ""


class DiffDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`diff TASK --json`: from the base commit (or from the last look) to the snapshot; `target` is the branch it would land on."""

    task: str
    base_commit: str
    snapshot_commit: str
    target: str | None
    target_moved: bool
    conflicts: list[str]
    files: list[FileView]
    balance_effect: None = None


class LogDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The trajectory of one attempt; `messages` in the form of the trajectory file (see `agents.messages`)."""

    task: str
    attempt: int
    messages: list[msgspec.Raw]


class MergeView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of `merge TASK`. `commit` is None unless it landed."""

    task: str
    state: State
    target: str | None
    commit: str | None
    message: str
    conflicts: list[str] = []


class StatusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`status --json`. `pid` and `socket` are None when no station runs."""

    running: bool
    pid: int | None
    socket: str | None
    version: str
    agents: int
    """The limit on tasks at work at once."""
    queue: dict[str, int]
    engine: EngineView | None
    home: str = ""
    totals: Totals | None = None
    warning: str = ""
