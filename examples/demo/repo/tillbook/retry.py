"""Calls that may fail for a moment: the card terminal, the tax office's server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def retry(
    call: Callable[[], Result],
    *,
    attempts: int = 3,
    delay_s: float = 0.5,
    factor: float = 2.0,
    on: tuple[type[Exception], ...] = (OSError,),
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Call until it succeeds, at most `attempts` times, with a growing pause between.

    The error of the last attempt is raised; other errors than `on` at once.
    """
    if attempts < 1:
        raise ValueError("attempts must be at least 1")
    for attempt in range(1, attempts):
        try:
            return call()
        except on as error:
            last_error = error
        sleep(delay_s)
        delay_s *= factor
    raise last_error
