"""What an endpoint's refusal means for us, told by its status and the numbers in its text, not by one engine's English."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from agents.decoding import NotUnderstood, decoded
from agents.errors import ContextTooLong, ModelFault, ModelRejected, ModelUnavailable
from agents.wire import error_text

_BUSY = frozenset({408, 409, 425, 429, 502, 503, 504, 529})
_WINDOW = re.compile(
    r"""(?:n_ctx|max_model_len)\W{1,4}(\d{3,9})
      | (?:context|maximum)[ ](?:context[ ]|input[ ]|prompt[ ])?(?:length|size|window)[^\d"]{1,30}(\d{3,9})""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_NUMBERS = re.compile(r"context_length_exceeded|exceed\w*\W.{0,40}\bcontext (?:length|size|window)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{3,9}")
_SHOWN_CHARACTERS = 500

Refusal = ContextTooLong | ModelFault | ModelRejected | ModelUnavailable


def refusal(status: int, body: bytes, headers: Mapping[str, str], *, max_tokens: int | None) -> Refusal:
    """The exception for a response that is no success.

    A 500 is a fault of this one request (it is asked again a few times, the others go on); 502 to 504 and 429 close the gate for all.
    """
    text = error_message(body)
    shown = f"HTTP {status}: {text[:_SHOWN_CHARACTERS] or 'no message'}"
    if status in _BUSY:
        return ModelUnavailable(shown, retry_after_s=retry_after_s(headers.get("retry-after")))
    if status >= 500:
        return ModelFault(shown)
    if status in {400, 413, 422}:
        too_long = context_too_long(body.decode(errors="replace"), max_tokens=max_tokens)
        if too_long is not None:
            return too_long
    return ModelRejected(shown)


def error_message(body: bytes) -> str:
    """The words of an error document, or the body itself when it is none."""
    try:
        document = decoded(body)
    except NotUnderstood:
        return body.decode(errors="replace").strip()
    return error_text(document) or body.decode(errors="replace").strip()


def context_too_long(text: str, *, max_tokens: int | None) -> ContextTooLong | None:
    """None when `text` (a message, or a whole error document) speaks of something else.

    The prompt's length is the smallest number that, with the output asked for, does not fit the window: engines name also the sum.
    """
    named = _WINDOW.search(text)
    if named is None:
        return ContextTooLong(text[:_SHOWN_CHARACTERS]) if _NO_NUMBERS.search(text) else None
    window = int(named[1] or named[2])
    others = {int(number) for number in _NUMBER.findall(text)} - {window, max_tokens}
    prompts = [number for number in others if number + (max_tokens or 0) > window]
    return ContextTooLong(text[:_SHOWN_CHARACTERS], limit_tokens=window, prompt_tokens=min(prompts, default=None))


def retry_after_s(value: str | None) -> float | None:
    """Both forms of the header (RFC 9110, 10.2.3), in seconds from now and never negative; None when it is missing or neither."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
