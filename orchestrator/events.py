"""The station's own facts, and the envelope in which every fact is stored and sent.

One log holds the agents' facts (`agents.events`) and these. Dashboard, metrics and review are folds over it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from agents import events as agent
from agents.events import Fact
from orchestrator.task import FailureKind, State


class TaskAdded(Fact, frozen=True, kw_only=True, tag="task-added"):
    title: str


class StateChanged(Fact, frozen=True, kw_only=True, tag="state-changed"):
    """`reason` is one short line for a person, '' when the states say it all."""

    old: State
    new: State
    reason: str = ""


class WorkspaceCreated(Fact, frozen=True, kw_only=True, tag="workspace-created"):
    workspace: str
    branch: str
    base_commit: str
    seconds: float


class AttemptResumed(Fact, frozen=True, kw_only=True, tag="attempt-resumed"):
    """The attempt goes on after `step` steps, in the same workspace, under a new fencing token."""

    step: int
    resumption: int


class SnapshotTaken(Fact, frozen=True, kw_only=True, tag="snapshot-taken"):
    """`left_out` names what lies in the workspace and cannot be taken, as under a name that git refuses."""

    commit: str
    files_changed: int
    insertions: int
    deletions: int
    seconds: float
    left_out: tuple[str, ...] = ()


class CheckFinished(Fact, frozen=True, kw_only=True, tag="check-finished"):
    """`exit_code` is None when the check ran out of time; `output` is its tail."""

    command: str
    exit_code: int | None
    seconds: float
    output: str


class AttemptEnded(Fact, frozen=True, kw_only=True, tag="attempt-ended"):
    """`outcome` is the loop's word (submitted, limit, stuck …); `failure` None when it went well."""

    outcome: str
    failure: FailureKind | None = None
    message: str = ""


class Commented(Fact, frozen=True, kw_only=True, tag="commented"):
    """A person's words on their way to the agent."""

    text: str


class Approved(Fact, frozen=True, kw_only=True, tag="approved"):
    snapshot_commit: str


class MergeLanded(Fact, frozen=True, kw_only=True, tag="merge-landed"):
    target: str
    commit: str


class MergeRefused(Fact, frozen=True, kw_only=True, tag="merge-refused"):
    target: str
    reason: str
    conflicts: tuple[str, ...] = ()


class StationStarted(Fact, frozen=True, kw_only=True, tag="station-started"):
    pid: int
    version: str


class StationStopped(Fact, frozen=True, kw_only=True, tag="station-stopped"):
    pass


class EngineUp(Fact, frozen=True, kw_only=True, tag="engine-up"):
    url: str
    model: str


class EngineDown(Fact, frozen=True, kw_only=True, tag="engine-down"):
    url: str
    reason: str


StationFact: TypeAlias = (
    TaskAdded
    | StateChanged
    | WorkspaceCreated
    | AttemptResumed
    | SnapshotTaken
    | CheckFinished
    | AttemptEnded
    | Commented
    | Approved
    | MergeLanded
    | MergeRefused
    | StationStarted
    | StationStopped
    | EngineUp
    | EngineDown
)
AnyFact: TypeAlias = agent.AgentFact | StationFact


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A stored fact. `seq` rises by one for each; `at` is seconds since the epoch; task and attempt are None for the station's own."""

    seq: int
    at: float
    task: str | None
    attempt: int | None
    fact: AnyFact
