"""Gift vouchers and until when they can be used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from tillbook.money import Money


def parse_moment(text: str) -> datetime:
    """A moment from the voucher service, ISO 8601 with its offset."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=None)


def utc_now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Voucher:
    code: str
    value: Money
    valid_until: datetime

    @classmethod
    def from_record(cls, record: dict[str, str]) -> Voucher:
        return cls(
            code=record["code"].strip().upper(),
            value=Money.of(record["value"], record.get("currency", "EUR")),
            valid_until=parse_moment(record["valid_until"]),
        )

    def is_valid(self, now: datetime | None = None) -> bool:
        return (now or utc_now()) <= self.valid_until
