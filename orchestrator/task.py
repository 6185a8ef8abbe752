"""A task, its states, and which state may follow which."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

State = Literal[
    "queued",
    "admitted",
    "preparing",
    "running",
    "claimed-done",
    "verified",
    "in-review",
    "merging",
    "merged",
    "interrupted",
    "stuck",
    "failed",
    "cancelled",
    "rejected",
    "conflicted",
    "quarantined",
]
Activity = Literal["model", "tool", "waiting-engine", "checks", "workspace"]
Kind = Literal["coding", "document", "accounting"]
FailureKind = Literal["checks", "limit", "stuck", "model", "workspace", "engine", "host", "bug", "conflict", "poison"]

STATES: tuple[State, ...] = get_args(State)

# Who moves a task on from a state, and to where. Nothing else writes `task.state`.
#   queued        the scheduler, when everything it needs has room
#   admitted..claimed-done   the worker that holds the lease; the scheduler once the lease has run out
#   verified, in-review      a person (or, later, the merge queue)
#   merging       the merge queue
#   interrupted   the scheduler: the same attempt goes on under a new fencing token
#   the rest      a person: `retry`
TRANSITIONS: dict[State, frozenset[State]] = {
    "queued": frozenset({"admitted", "cancelled"}),
    "admitted": frozenset({"preparing", "queued", "interrupted", "failed", "cancelled"}),
    "preparing": frozenset({"running", "queued", "interrupted", "failed", "cancelled"}),
    "running": frozenset({"claimed-done", "queued", "interrupted", "stuck", "failed", "cancelled"}),
    "claimed-done": frozenset({"verified", "running", "queued", "interrupted", "failed", "cancelled"}),
    "verified": frozenset({"in-review", "merging", "rejected", "queued", "cancelled"}),
    "in-review": frozenset({"merging", "rejected", "queued", "cancelled"}),
    "merging": frozenset({"merged", "conflicted", "in-review"}),
    "merged": frozenset(),
    "interrupted": frozenset({"admitted", "quarantined", "cancelled"}),
    "stuck": frozenset({"queued", "rejected", "cancelled"}),
    "failed": frozenset({"queued", "rejected", "cancelled"}),
    "cancelled": frozenset({"queued"}),
    "rejected": frozenset({"queued"}),
    "conflicted": frozenset({"queued", "merging", "rejected", "cancelled"}),
    "quarantined": frozenset({"queued", "cancelled"}),
}

ACTIVE: frozenset[State] = frozenset({"admitted", "preparing", "running", "claimed-done", "merging"})
"""Somebody works on it now: a worker under a lease, or, for `merging`, the station itself without one."""
REVIEWABLE: frozenset[State] = frozenset({"verified", "in-review"})
ENDED: frozenset[State] = frozenset(
    {"verified", "in-review", "merged", "stuck", "failed", "cancelled", "rejected", "conflicted", "quarantined"}
)
"""No agent will touch it again unless a person asks."""
UNSUCCESSFUL: frozenset[State] = frozenset({"stuck", "failed", "cancelled", "rejected", "conflicted", "quarantined"})


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Ends of an attempt. `tokens` bounds the output tokens of all its replies together."""

    steps: int = 60
    tokens: int = 200_000
    seconds: float = 3_600.0


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for. `base` and `repo` are resolved at submission: a commit id and an absolute path."""

    id: str
    title: str
    kind: Kind = "coding"
    prompt: str
    repo: str
    base_commit: str
    target_branch: str | None
    """The branch a merge lands on; None when HEAD was detached and no branch was named."""
    checks: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    priority: int = 0
    """Higher first; ties in the order of submission."""
    attempts: int = 2
    """How many attempts the faults of agent and task may use up."""
    limits: Limits = Limits()
    agent: str = "builtin"
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
