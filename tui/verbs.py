"""Which commands fit a task as it is, and in a few words why one does not. Pure.

The station decides. This spares a person the words that it would refuse, and keeps keys from standing there that do nothing.
"""

from __future__ import annotations

import re
from typing import Literal

from orchestrator.task import ENDED, LEASED, MERGEABLE, REVIEWABLE, TRANSITIONS, WAITING
from orchestrator.views import TaskRow
from tui.foreign import one_line

Verb = Literal["approve", "reject", "merge", "cancel", "retry", "say"]

_COMMAND = re.compile(r"`(?:stationmaster )?(approve|reject|merge|cancel|retry|say|diff|review|show)\b[^`]*`")
_KEYS = {
    "approve": "a",
    "reject": "x",
    "merge": "m",
    "cancel": "c",
    "retry": "r",
    "say": "s",
    "diff": "the diff",
    "review": "v",
    "show": "the task's own screen",
}


def objection(verb: Verb, row: TaskRow) -> str | None:
    """Why `verb` does not fit the task now, as '<verb>: <task> is …'; None when it does.

    Whether a merge has its approval is left to the station: it may have come since the row.
    """
    why = _why_not(verb, row)
    return f"{verb}: {one_line(row.id, limit=40)} {why}" if why else None


def _why_not(verb: Verb, row: TaskRow) -> str | None:
    if row.state == "merging":
        return "is being merged"
    match verb:
        case "cancel":
            return _no_cancel(row)
        case "retry":
            return _no_retry(row)
        case "approve":
            return _no_approval(row)
        case "merge":
            return None if row.state in MERGEABLE else f"is {row.state}"
        case "reject":
            return None if "rejected" in TRANSITIONS[row.state] else f"is {row.state}"
        case "say":
            return _no_words(row)


def _no_cancel(row: TaskRow) -> str | None:
    if row.state in WAITING or row.state in LEASED:
        return None
    return "is finished; x rejects it in its review" if row.state in REVIEWABLE else f"is {row.state}, nothing is at work"


def _no_retry(row: TaskRow) -> str | None:
    if row.state in LEASED:
        return f"is {row.state}; c cancels it first"
    return None if row.state in ENDED and "queued" in TRANSITIONS[row.state] else f"is {row.state}"


def _no_approval(row: TaskRow) -> str | None:
    if row.state not in REVIEWABLE:
        return f"is {row.state}"
    if row.snapshot_commit is None:
        return "has changed nothing; r makes a new attempt"
    return "is approved, m merges it" if row.approved else None


def _no_words(row: TaskRow) -> str | None:
    if row.state not in ENDED:
        return None
    return f"is {row.state}" if row.state == "merged" else f"is {row.state}, nobody hears it; r retries with a comment"


def in_keys(hint: str) -> str:
    """A hint of the station's with the keys of the dashboard in the place of commands that have one."""
    return _COMMAND.sub(lambda found: _KEYS[found[1]], hint)
