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

WAITING: frozenset[State] = frozenset({"queued", "interrupted"})
"""It may start, or go on, when there is room and what it comes after has succeeded."""
LEASED: frozenset[State] = frozenset({"admitted", "preparing", "running", "claimed-done"})
"""A worker holds it."""
ACTIVE: frozenset[State] = frozenset({*LEASED, "merging"})
"""Somebody works on it now: a worker under a lease, or, for `merging`, the station itself without one."""
REVIEWABLE: frozenset[State] = frozenset({"verified", "in-review"})
"""Its diff waits for a person."""
MERGEABLE: frozenset[State] = frozenset(state for state in STATES if "merging" in TRANSITIONS[state])
"""Once it is approved, it can be merged."""
SATISFIED: frozenset[State] = frozenset({*REVIEWABLE, "merging", "merged"})
"""What comes after it may start.

Passing its checks is enough: work would otherwise stand still until a person had reviewed and merged every forerunner. The price: a
dependent starts from its own base commit, so it does not see the results of the tasks it waited for. A forerunner that failed or
was rejected keeps its dependents waiting, with that as the visible reason; they have not failed themselves.
"""
VERIFIED: frozenset[State] = frozenset({*SATISFIED, "conflicted"})
"""Its checks have passed; what becomes of the diff later does not undo that."""
UNSUCCESSFUL: frozenset[State] = frozenset({"stuck", "failed", "cancelled", "rejected", "conflicted", "quarantined"})
"""It ended, and not well."""
ENDED: frozenset[State] = frozenset({*UNSUCCESSFUL, *REVIEWABLE, "merged"})
"""No agent will touch it again unless a person asks."""
BY_A_PERSON: frozenset[State] = frozenset({"cancelled", "rejected"})
"""It ended because a person wanted it to."""
STUCK: frozenset[State] = UNSUCCESSFUL - BY_A_PERSON
"""It ended badly, and not because a person wanted it to."""


ATTEMPTS = 2


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
    attempts: int = ATTEMPTS
    """How many attempts the faults of agent and task may use up."""
    limits: Limits = Limits()
    agent: str = "builtin"
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
