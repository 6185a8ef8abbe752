"""Book a statement by rules: python3 -B tools/book.py rules/NAME.toml

Writes ledger/NAME.ledger, or nothing when a row fits no rule.
"""

from __future__ import annotations

import re
import sys
import tomllib
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import statement
from statement import Row, Statement, Unclear

Posting = tuple[str, Decimal]


def transaction(day: str, text: str, row: str, postings: list[Posting], currency: str) -> str:
    lines = [f"{day} {text}", f"    ; row: {row}"]
    lines += [f"    {account:<28}{amount:>12.2f} {currency}" for account, amount in postings]
    return "\n".join(lines) + "\n"


def contra(rule: dict[str, Any], amount: Decimal) -> list[Posting]:
    """The other side of a bank row: one account, or net and tax."""
    if "vat" not in rule:
        return [(rule["account"], -amount)]
    net = (amount * 100 / (100 + rule["vat"])).quantize(Decimal("0.01"), ROUND_HALF_UP)
    tax = "assets:input-vat" if amount < 0 else "liabilities:vat"
    return [(rule["account"], -net), (tax, net - amount)]


def pick(rules: list[dict[str, Any]], row: Row) -> dict[str, Any] | None:
    return next((rule for rule in rules if re.search(rule["match"], row.text)), None)


def book(source: Statement, config: dict[str, Any]) -> list[str]:
    decimal, order = config["decimal"], config["dates"]
    opening, _ = source.ends(decimal)
    first = statement.parse_date(source.rows[0].date, order).isoformat()
    postings = [(source.account, opening), ("equity:opening", -opening)]
    entries = [transaction(first, "opening balance", "opening", postings, source.currency)]
    problems = []
    for row in source.rows:
        rule = pick(config["rule"], row)
        if rule is None:
            problems.append(f"row {row.id} fits no rule: {row.text!r} {row.credit or row.debit}")
            continue
        amount = row.amount(decimal)
        postings = [(source.account, amount), *contra(rule, amount)]
        day = statement.parse_date(row.date, order).isoformat()
        entries.append(transaction(day, row.text, row.id, postings, source.currency))
    if problems:
        raise Unclear("\n".join(problems))
    return entries


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: book.py rules/NAME.toml", file=sys.stderr)
        return 2
    path = Path(sys.argv[1])
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
        source = statement.load(config["statement"])
        entries = book(source, config)
    except (Unclear, KeyError, FileNotFoundError, tomllib.TOMLDecodeError) as reason:
        print(f"error: {reason if isinstance(reason, Unclear) else repr(reason)}", file=sys.stderr)
        return 1
    target = Path("ledger") / f"{source.name}.ledger"
    target.write_text("\n".join(entries), encoding="utf-8")
    print(f"{len(entries) - 1} rows and the opening balance booked in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
