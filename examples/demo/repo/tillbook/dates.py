"""Due dates and billing periods."""

from __future__ import annotations

import calendar
from datetime import date, timedelta


def add_months(day: date, months: int) -> date:
    """The same day of a later month, or that month's last day when it is shorter."""
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    length = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, length))


def due_date(issued: date, days: int = 14) -> date:
    """The last day to pay; a Saturday or Sunday moves it to Monday."""
    due = issued + timedelta(days=days)
    return due + timedelta(days=max(0, 7 - due.weekday()) % 7 if due.weekday() > 4 else 0)


def quarter(day: date) -> tuple[date, date]:
    """First and last day of the quarter, for the VAT return."""
    first = date(day.year, day.month - (day.month - 1) % 3, 1)
    return first, add_months(first, 3) - timedelta(days=1)
