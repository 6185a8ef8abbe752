"""Hold ledger/NAME.ledger to its statement: python3 -B tools/check_ledger.py NAME

Covers: every row booked exactly once, with its date and amount; every transaction adds up
to zero; accounts of the chart only; the account ends at the statement's closing balance.
Does not cover: whether an account is the right one for a row.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import statement
from statement import Statement, Unclear

HEAD = re.compile(r"(\d{4}-\d\d-\d\d) (\S.*)")
NOTE = re.compile(r"\s+; row: (\S+)\s*")
POSTING = re.compile(r"\s+([a-z][a-z:-]*)\s+(-?\d+\.\d\d) ([A-Z]{3})\s*")


@dataclass(slots=True)
class Transaction:
    line: int
    day: str
    row: str = ""
    postings: list[tuple[str, Decimal, str]] = field(default_factory=list)

    def on(self, account: str) -> Decimal:
        return sum((amount for name, amount, _ in self.postings if name == account), Decimal(0))


def parse(text: str) -> list[Transaction]:
    found: list[Transaction] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(";"):
            continue
        if match := HEAD.fullmatch(line):
            found.append(Transaction(number, match[1]))
        elif found and (match := NOTE.fullmatch(line)):
            found[-1].row = match[1]
        elif found and (match := POSTING.fullmatch(line)):
            found[-1].postings.append((match[1], Decimal(match[2]), match[3]))
        else:
            raise Unclear(f"line {number} is neither a transaction nor a posting: {line!r}")
    return found


def problems(transactions: list[Transaction], source: Statement, chart: set[str]) -> list[str]:
    decimal = statement.infer_decimal(source.texts())
    source.confirm(decimal)
    order = statement.infer_dates([row.date for row in source.rows])
    opening, closing = source.ends(decimal)
    found = []
    for entry in transactions:
        at = f"line {entry.line}:"
        if len(entry.postings) < 2 or sum(amount for _, amount, _ in entry.postings) != 0:
            found.append(f"{at} the postings do not add up to zero")
        strange = {name for name, _, _ in entry.postings} - chart
        found += [f"{at} {name} is not in the chart of accounts" for name in sorted(strange)]
        if {unit for _, _, unit in entry.postings} - {source.currency}:
            found.append(f"{at} the statement is in {source.currency}")
    first = source.rows[0].date
    wanted = {"opening": (first, opening)}
    wanted |= {row.id: (row.date, row.amount(decimal)) for row in source.rows}
    for row, (day, amount) in wanted.items():
        booked = [entry for entry in transactions if entry.row == row]
        if len(booked) != 1:
            found.append(f"row {row} is booked {len(booked)} times")
            continue
        if booked[0].on(source.account) != amount:
            found.append(f"row {row} is {amount}, booked is {booked[0].on(source.account)}")
        if booked[0].day != statement.parse_date(day, order).isoformat():
            found.append(f"row {row} is of {day}, booked on {booked[0].day}")
    found += [f"line {e.line}: no row {e.row!r}" for e in transactions if e.row not in wanted]
    ends = sum((entry.on(source.account) for entry in transactions), Decimal(0))
    if ends != closing:
        found.append(f"{source.account} ends at {ends}, the statement at {closing}")
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: check_ledger.py NAME", file=sys.stderr)
        return 2
    name = sys.argv[1]
    path = Path("ledger") / f"{name}.ledger"
    if not path.is_file():
        print(f"WRONG {path} is missing")
        return 1
    chart = set(Path("ledger/chart.txt").read_text().split())
    source = statement.load(name)
    try:
        found = problems(parse(path.read_text(encoding="utf-8")), source, chart)
    except Unclear as reason:
        found = [str(reason)]
    for problem in found:
        print(f"WRONG {problem}")
    if found:
        return 1
    closing = source.ends(statement.infer_decimal(source.texts()))[1]
    print(f"{path}: {len(source.rows)} rows booked, closing balance {closing} {source.currency}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
