"""Amounts of money, held in the smallest unit of their currency."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

MINOR_DIGITS = {"EUR": 2, "CHF": 2, "GBP": 2, "USD": 2, "JPY": 0}


class CurrencyMismatch(ValueError):
    """Two amounts of different currencies met in one sum."""


@dataclass(frozen=True, slots=True)
class Money:
    minor: int
    currency: str = "EUR"

    @classmethod
    def of(cls, amount: Decimal | str | int, currency: str = "EUR") -> Money:
        """`amount` in whole units; half a cent is rounded commercially."""
        digits = MINOR_DIGITS[currency]
        exact = Decimal(amount).scaleb(digits)
        return cls(int(exact.quantize(Decimal(1))), currency)

    @property
    def amount(self) -> Decimal:
        return Decimal(self.minor).scaleb(-MINOR_DIGITS[self.currency])

    def __add__(self, other: Money) -> Money:
        self._same(other)
        return Money(self.minor + other.minor, self.currency)

    def __sub__(self, other: Money) -> Money:
        self._same(other)
        return Money(self.minor - other.minor, self.currency)

    def times(self, factor: Decimal | int) -> Money:
        return Money.of(self.amount * factor, self.currency)

    def vat(self, rate: Decimal) -> Money:
        """The tax on a net amount; `rate` in percent."""
        return self.times(rate / 100)

    def __str__(self) -> str:
        return f"{self.amount:.{MINOR_DIGITS[self.currency]}f} {self.currency}"

    def _same(self, other: Money) -> None:
        if other.currency != self.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency}")
