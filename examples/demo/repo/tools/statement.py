"""Bank statements: rows, amounts and dates. Amounts are Decimal, as the bank wrote them.

One style of numbers and dates holds for a whole column. `infer_decimal` and `infer_dates`
give the one that fits all rows, and refuse when several do.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

BLANKS = " \u00a0\u202f"
MINUS = "-\u2212"
GROUPS = {".": f",'\u2019{BLANKS}", ",": f".'\u2019{BLANKS}"}
ORDERS = {
    "Y-M-D": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)(?:T.*)?",
    "D.M.Y": r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d{4}|\d\d)",
    "D/M/Y": r"(?P<d>\d\d?)/(?P<m>\d\d?)/(?P<y>\d{4}|\d\d)",
    "M/D/Y": r"(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<y>\d{4}|\d\d)",
}


class Unclear(ValueError):
    """A number or date that does not fit its style, or a column that fits several."""


def parse_amount(text: str, decimal: str) -> Decimal:
    """Minus in front or behind, hyphen or U+2212, or parentheses; blank is zero."""
    bare = re.sub(r"[€$£]|EUR|CHF|GBP", "", text).strip(BLANKS)
    if not bare:
        return Decimal(0)
    negative = bare[0] in MINUS or bare[-1] in MINUS
    inside = bare.strip(MINUS + BLANKS)
    if bare.startswith("(") and bare.endswith(")"):
        negative, inside = True, bare[1:-1].strip(BLANKS)
    group = f"[{re.escape(GROUPS[decimal])}]"
    if not re.fullmatch(rf"(\d+|\d{{1,3}}({group}\d{{3}})+)({re.escape(decimal)}\d\d)?", inside):
        raise Unclear(f"{text!r} is no amount with {decimal!r} before the cents")
    value = Decimal(re.sub(group, "", inside).replace(decimal, "."))
    return -value if negative else value


def parse_date(text: str, order: str) -> date:
    found = re.fullmatch(ORDERS[order], text.strip())
    if not found:
        raise Unclear(f"{text!r} is no date in the order {order}")
    year = int(found["y"])
    try:
        return date(year + 2000 if year < 100 else year, int(found["m"]), int(found["d"]))
    except ValueError as reason:
        raise Unclear(f"{text!r} is no date in the order {order}: {reason}") from None


def infer_decimal(texts: Sequence[str]) -> str:
    return _only([mark for mark in ".," if _fits(parse_amount, texts, mark)], "number style")


def infer_dates(texts: Sequence[str]) -> str:
    return _only([order for order in ORDERS if _fits(parse_date, texts, order)], "date order")


def _fits(parse: Any, texts: Sequence[str], style: str) -> bool:
    try:
        for text in texts:
            parse(text, style)
    except Unclear:
        return False
    return True


def _only(styles: list[str], what: str) -> str:
    if len(styles) != 1:
        raise Unclear(f"{what}: {' and '.join(styles) if styles else 'none'} fits the column")
    return styles[0]


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    date: str
    text: str
    debit: str
    credit: str
    minus: bool
    balance: str | None

    def amount(self, decimal: str) -> Decimal:
        value = parse_amount(self.credit, decimal) - parse_amount(self.debit, decimal)
        return -value if self.minus else value


@dataclass(frozen=True, slots=True)
class Statement:
    """Rows from the oldest to the newest, everything as text."""

    name: str
    account: str
    currency: str
    rows: list[Row]
    opening: str | None
    closing: str | None

    def texts(self) -> list[str]:
        """All amounts, to tell the number style from."""
        parts = [text for row in self.rows for text in (row.debit, row.credit, row.balance)]
        return [text for text in (*parts, self.opening, self.closing) if text]

    def ends(self, decimal: str) -> tuple[Decimal, Decimal]:
        """Opening and closing balance."""
        if self.opening is not None and self.closing is not None:
            return parse_amount(self.opening, decimal), parse_amount(self.closing, decimal)
        first, last = self.rows[0], self.rows[-1]
        opening = parse_amount(first.balance or "", decimal) - first.amount(decimal)
        return opening, parse_amount(last.balance or "", decimal)

    def confirm(self, decimal: str) -> None:
        """Raise unless every row leads to the balance that the bank states."""
        balance, closing = self.ends(decimal)
        for row in self.rows:
            balance += row.amount(decimal)
            if row.balance is not None and balance != parse_amount(row.balance, decimal):
                raise Unclear(
                    f"row {row.id}: the balance is {row.balance}, the rows add up to {balance}"
                )
        if balance != closing:
            raise Unclear(f"the closing balance is {closing}, the rows add up to {balance}")


def load(name: str) -> Statement:
    layout = tomllib.loads(Path("bank/layouts.toml").read_text(encoding="utf-8"))[name]
    text = Path(f"bank/{name}.csv").read_bytes().decode(layout.get("encoding", "utf-8"))
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=layout["delimiter"]))
    ends = {record[0]: record[-1] for record in records if record}
    skip = layout.get("skip", 0)
    marks = {layout.get("opening"), layout.get("closing")}
    found = [record for record in records[skip + 1 :] if record and record[0] not in marks]
    rows = [
        _row(layout, str(i), dict(zip(records[skip], r, strict=True)))
        for i, r in enumerate(found, 1)
    ]
    if layout.get("newest_first"):
        rows.reverse()
    opening, closing = ends.get(layout.get("opening")), ends.get(layout.get("closing"))
    return Statement(name, layout["account"], layout["currency"], rows, opening, closing)


def _row(layout: dict[str, Any], number: str, cells: dict[str, str]) -> Row:
    return Row(
        id=cells[layout["id"]] if "id" in layout else number,
        date=cells[layout["date"]],
        text=" ".join(" ".join(cells[column] for column in layout["text"]).split()),
        debit=cells[layout["debit"]] if "debit" in layout else "",
        credit=cells[layout.get("amount") or layout["credit"]],
        minus=any(cells[column] == mark for column, mark in layout.get("minus_when", {}).items()),
        balance=cells[layout["balance"]] if "balance" in layout else None,
    )
