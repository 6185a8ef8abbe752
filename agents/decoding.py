"""JSON from somebody else, which may be anything: a model, an endpoint, a file that was damaged."""

from __future__ import annotations

from typing import TypeVar, overload

import msgspec

T = TypeVar("T")


class NotUnderstood(ValueError):
    """It is no JSON, not of the wanted shape, or nested deeper than anything that is meant. The message says which, and where."""


@overload
def decoded(data: bytes | str) -> object: ...
@overload
def decoded(data: bytes | str, kind: type[T]) -> T: ...
def decoded(data: bytes | str, kind: type[object] = object) -> object:
    """Raises `NotUnderstood`, and nothing else, for whatever cannot be read as `kind`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError:
        raise NotUnderstood("it is nested too deeply") from None
    except ValueError as error:  # msgspec's own errors, and UnicodeDecodeError
        raise NotUnderstood(str(error)) from None
