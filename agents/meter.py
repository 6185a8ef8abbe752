"""Live counts of one attempt: cheap to raise for every chunk, read a few times a second by whoever shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Meter:
    """Tokens of an attempt so far. Plain integers, raised by the model client only, from the engine's usage.

    `live_text` is the tail of what the model writes at this moment ('' between replies), for a person who watches.
    `decode_s` sums, over the replies, the time from the first to the last chunk; None before the first.
    """

    input_tokens: int = 0
    cached_tokens: int | None = None
    output_tokens: int = 0
    decode_s: float | None = None
    streaming: bool = False
    live_text: str = ""
