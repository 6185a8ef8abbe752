"""What clients of the API send, read and bounded: whatever it is, it is understood or refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from starlette.requests import Request

from agents.decoding import NotUnderstood, decoded
from orchestrator.errors import UserError
from orchestrator.task import TaskSpec

T = TypeVar("T")

BODY_BYTES = 16 << 20
MOST = 2**63 - 1
"""The largest number that the store can hold."""
_DIGITS = 19
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Malformed(UserError):
    """The request itself is wrong, whatever the station's state."""


def number(request: Request, name: str) -> int | None:
    """A number of the query, 0 to `MOST`; None when it is not there. Raises `Malformed`."""
    text = request.query_params.get(name)
    if text is None:
        return None
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else -1
    if not 0 <= found <= MOST:
        raise Malformed(f"{name}={text[:40]} is no number", hint=f"0 to {MOST}")
    return found


async def body(request: Request, into: type[T]) -> T:
    """The request's body; `{}` when it is empty. Raises `Malformed`."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > BODY_BYTES:
            raise Malformed(f"the request is larger than {BODY_BYTES >> 20} MiB")
    try:
        return decoded(bytes(data) or b"{}", into)
    except NotUnderstood as bad:
        raise Malformed(f"the request is not understood: {bad}") from bad


def expect_resolved(specs: Sequence[TaskSpec]) -> None:
    """Raises `Malformed` for the first spec that no client of ours makes: those ask git, and hold their users to the task file's bounds."""
    for spec in specs:
        for field, wanted in _wrong(spec):
            raise Malformed(f"task {spec.id[:80]!r}: `{field}` is wrong", hint=wanted)


def _wrong(spec: TaskSpec) -> Iterator[tuple[str, str]]:
    limits = spec.limits
    if not spec.repo.startswith("/"):
        yield "repo", "the absolute path of a repository"
    if not _COMMIT.fullmatch(spec.base_commit):
        yield "base_commit", "the whole id of a commit, in hexadecimal digits"
    if not spec.prompt.strip():
        yield "prompt", "it says what the agent is to do"
    if spec.agent != "builtin":
        yield "agent", "`builtin` is the only one"
    if not -1_000_000 <= spec.priority <= 1_000_000:
        yield "priority", "-1000000 to 1000000"
    if not 1 <= spec.attempts <= 100:
        yield "attempts", "1 to 100"
    if not 1 <= limits.steps <= 100_000:
        yield "limits.steps", "1 to 100000"
    if not 1 <= limits.tokens <= 10**12:
        yield "limits.tokens", "1 to 10^12"
    if not 0 < limits.seconds <= 1e8:
        yield "limits.seconds", "more than 0, at most 10^8"
