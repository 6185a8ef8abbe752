"""Receipts as plain text, for the printer in the till."""

from __future__ import annotations

import textwrap

from tillbook.money import Money


def columns(left: str, right: str, width: int) -> str:
    """One printed line: `left` cut to what `right` leaves, at least one blank between."""
    room = width - len(right) - 1
    return f"{left[:room]:<{room}} {right}"


def print_receipt(lines: list[tuple[str, Money]], footer: str, width: int = 42) -> str:
    total = Money(sum(amount.minor for _, amount in lines), lines[0][1].currency)
    printed = [columns(name, f"{amount.amount:.2f}", width) for name, amount in lines]
    printed.append("-" * width)
    printed.append(columns("TOTAL", str(total), width))
    printed.extend(line.center(width).rstrip() for line in textwrap.wrap(footer, width))
    return "\n".join(printed) + "\n"
