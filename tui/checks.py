"""Results of checks, counted: one that has not run has neither passed nor failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.views import CheckOutput, CheckView


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    passed: int
    failed: int
    """An exit status other than 0, or out of time."""
    unrun: int


def tally(checks: Sequence[CheckView | CheckOutput]) -> Tally:
    passed = sum(check.exit_code == 0 for check in checks)
    unrun = sum(check.exit_code is None and check.seconds is None for check in checks)
    return Tally(passed=passed, failed=len(checks) - passed - unrun, unrun=unrun)
