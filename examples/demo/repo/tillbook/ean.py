"""Bar codes on the shelf: EAN-13 and its check digit."""

from __future__ import annotations


def check_digit(body: str) -> int:
    """The 13th digit for the twelve digits of `body`."""
    if len(body) != 12 or not (body.isascii() and body.isdigit()):
        raise ValueError(f"not twelve digits: {body!r}")
    weighted = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body))
    return -weighted % 10


def is_valid(code: str) -> bool:
    digits = code.replace(" ", "")
    if len(digits) != 13 or not (digits.isascii() and digits.isdigit()):
        return False
    return check_digit(digits[:12]) == int(digits[12])
