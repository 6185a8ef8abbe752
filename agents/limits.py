"""Where an attempt ends."""

from __future__ import annotations

from typing import Protocol


class Limits(Protocol):
    """`tokens` bounds the output tokens of all replies together; `seconds` leaves out waiting for the engine. (`TaskSpec.limits` is one.)"""

    @property
    def steps(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def seconds(self) -> float: ...
