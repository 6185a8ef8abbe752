"""What goes wrong on purpose, by name: `NAME`, `NAME=SHARE`, or for those that take seconds `NAME=SECONDS` and `NAME=SECONDS:SHARE`.

Whether a request is hit is drawn from the seed, the request's content and how often that content came: the load around it changes nothing,
and a request that is sent again gets a new draw.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from orchestrator.errors import UserError
from orchestrator.serving.sim.tokens import seed_of

FAULTS: Mapping[str, str] = {
    "cut-stream": "the connection is closed after half of the output",
    "no-finish-reason": "the stream ends in order, but without a finish reason",
    "error-in-stream": "after half of the output an error comes in the stream, then [DONE]",
    "no-usage": "no usage is reported, although it was asked for",
    "bad-tool-json": "the arguments of tool calls are cut off and no JSON",
    "html-200": "a proxy's HTML page with status 200",
    "http-503": "status 503 with an error body",
    "http-429=SECONDS": "status 429 with a Retry-After of SECONDS",
    "slow-start=SECONDS": "the request reaches the engine SECONDS late",
    "hang": "the status line comes, then nothing until the client leaves",
}
"""The name as it is written (with its value) and what it does. Each takes a share of requests (0 to 1): `cut-stream=0.05`, `slow-start=2:0.1`."""

REMEMBERED = 10_000


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    share: float = 1.0
    seconds: float = 0.0


class Faults:
    def __init__(self, faults: Sequence[Fault], *, seed: int) -> None:
        self._faults = faults
        self._seed = seed
        self._seen: OrderedDict[int, int] = OrderedDict()

    def of_request(self, digest: int) -> dict[str, Fault]:
        """The faults that hit this request, by name. Each call counts as one more arrival of that content."""
        if not self._faults:
            return {}
        arrival = self._seen.pop(digest, 0)
        self._seen[digest] = arrival + 1
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return {fault.name: fault for fault in self._faults if self._hits(fault, digest, arrival)}

    def _hits(self, fault: Fault, digest: int, arrival: int) -> bool:
        return Random(seed_of(self._seed, fault.name, digest, arrival)).random() < fault.share  # noqa: S311 - a drill, not a secret


def parse_faults(texts: Sequence[str]) -> list[Fault]:
    """Raises UserError for a name that does not exist and for a value that is no number or out of range."""
    return [_parse(text) for text in texts]


def _parse(text: str) -> Fault:
    timed = {name.partition("=")[0]: "=" in name for name in FAULTS}
    name, _, value = text.partition("=")
    if name not in timed:
        raise UserError(f"no fault `{name}`", hint=f"faults: {', '.join(FAULTS)}")
    seconds, _, share = value.partition(":") if timed[name] else ("0", "", value)
    try:
        fault = Fault(name=name, seconds=float(seconds), share=float(share or 1))
    except ValueError:
        raise UserError(f"fault `{text}`: not a number", hint=_form(name, takes_seconds=timed[name])) from None
    if not (0 <= fault.share <= 1 and 0 <= fault.seconds < float("inf")):
        raise UserError(f"fault `{text}`: out of range", hint=_form(name, takes_seconds=timed[name]))
    return fault


def _form(name: str, *, takes_seconds: bool) -> str:
    if takes_seconds:
        return f"`{name}=SECONDS` or `{name}=SECONDS:SHARE`, with a share from 0 to 1"
    return f"`{name}` or `{name}=SHARE`, with a share from 0 to 1"
