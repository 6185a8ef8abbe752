"""Hold out/NAME.json to its document: python3 -B tools/check_document.py specs/NAME.toml

Covers: every value stands in the document at the stated place, of the right type, beside
the label that the spec names; every row of the table is taken; the sums are right; pages
and sheets that could not be read are named.
Does not cover: whether a text value is the best choice of words.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import extract

MONTHS = (
    "januar january", "februar february", "märz march", "april", "mai may", "juni june",
    "juli july", "august", "september", "oktober october", "november", "dezember december",
)  # fmt: skip
NUMBERS = {
    ".": re.compile(r"(?<![\w.,-])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,-]\d)"),
    ",": re.compile(r"(?<![\w.,-])-?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?(?!\w|[.,-]\d)"),
}
DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)|(\d{1,2})\.\s?(\d{1,2})\.(\d{4})|(\d{1,2})\.?\s(\w+)\s(\d{4})"
)
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4})+\b")


class Wrong(Exception):
    """What is wrong with one field or rule."""


def need(condition: object, message: str) -> None:
    if not condition:
        raise Wrong(message)


def numbers_in(text: str, decimal: str) -> set[Decimal]:
    group = "," if decimal == "." else "."
    found = NUMBERS[decimal].findall(text)
    return {Decimal(number.replace(group, "").replace(decimal, ".")) for number in found}


def dates_in(text: str) -> set[str]:
    found = set()
    for year, month, day, d, m, y, d2, name, y2 in DATE.findall(text):
        if name:
            index = [i for i, names in enumerate(MONTHS, 1) if name.lower() in names.split()]
            parts = (y2, index[0], d2) if index else None
        else:
            parts = (year or y, month or m, day or d)
        if parts:
            found.add(date(*map(int, parts)).isoformat())
    return found


def holds(text: str, value: Any, kind: str, decimal: str) -> bool:
    """Whether `text` says `value`."""
    match kind:
        case "money" | "number":
            return isinstance(value, str) and Decimal(value) in numbers_in(text, decimal)
        case "integer":
            return type(value) is int and Decimal(value) in numbers_in(text, decimal)
        case "date":
            return value in dates_in(text)
        case "iban":
            return value in [found.replace(" ", "") for found in IBAN.findall(text)]
        case _:
            words = " ".join(value.split())
            edge = rf"(?<!\w){re.escape(words)}(?!\w)"
            return bool(words) and bool(re.search(edge, " ".join(text.split())))


class Checker:
    def __init__(self, spec: dict[str, Any], answer: dict[str, Any]) -> None:
        self.spec = spec
        self.answer = answer
        self.document = extract.read(Path(spec["document"]))
        self.decimal = spec["decimal"]
        self.values: dict[str, Any] = {}

    def source(self, source: dict[str, str]) -> tuple[str, str]:
        """The document's own text at the place, and the row around it."""
        need(source["file"] == self.spec["document"], f"the source is {self.spec['document']}")
        found = self.document.at(source["place"])
        need(found, f"the document has no place {source['place']!r}")
        need(source["text"] == found[0], f"{source['place']} reads {found[0]!r}")
        return found

    def field(self, name: str) -> None:
        wanted = self.spec["fields"][name]
        need(name in self.answer["fields"], "is missing")
        given = self.answer["fields"][name]
        self.values[name] = given["value"]
        if wanted.get("derived"):
            need(given["source"] is None, "is not in the document: its source is null")
            return
        text, row = self.source(given["source"])
        need(
            holds(text, given["value"], wanted["type"], self.decimal),
            f"{text!r} does not hold {given['value']!r}",
        )
        need(wanted.get("label", "") in row, f"the place is not the one of {wanted.get('label')!r}")

    def lines(self) -> None:
        wanted = self.spec.get("lines")
        if not wanted:
            return
        taken = []
        for line in self.answer["lines"]:
            text, _ = self.source(line["source"])
            taken.append(line["source"]["place"])
            need(
                set(line["values"]) == set(wanted["columns"]),
                f"columns are {list(wanted['columns'])}",
            )
            for name, kind in wanted["columns"].items():
                value = line["values"][name]
                need(
                    holds(text, value, kind, self.decimal),
                    f"{text!r} does not hold {name} {value!r}",
                )
        rows = self.document.rows
        first = next(i for i, row in enumerate(rows) if row.text.startswith(wanted["after"])) + 1
        ends = [
            i
            for i, row in enumerate(rows)
            if "before" in wanted and row.text.startswith(wanted["before"])
        ]
        there = [row.place for row in rows[first : ends[0] if ends else len(rows)]]
        need(taken == there, f"taken are {taken}, the table has {there}")

    def column(self, name: str) -> list[Decimal]:
        return [Decimal(line["values"][name]) for line in self.answer["lines"]]

    def rule(self, rule: dict[str, Any]) -> None:
        """One line of arithmetic, to the cent."""
        match rule:
            case {"sum": column, "is": result}:
                got = sum(self.column(column))
            case {"add": names, "is": result}:
                got = sum(Decimal(self.values[name]) for name in names)
            case {"subtract": [one, other], "is": result}:
                got = Decimal(self.values[one]) - Decimal(self.values[other])
            case {"multiply": [name, int(factor)], "is": result}:
                got = Decimal(self.values[name]) * factor
            case {"percent": [rate, name], "is": result}:
                got = Decimal(self.values[name]) * Decimal(self.values[rate]) / 100
            case {"each": [one, other], "is": column}:
                products = zip(
                    self.column(one), self.column(other), self.column(column), strict=True
                )
                need(
                    all(a * b == c for a, b, c in products), f"{one} times {other} is not {column}"
                )
                return
            case _:
                raise SystemExit(f"error: unknown rule {rule}")
        cents = Decimal(got).quantize(Decimal("0.01"), ROUND_HALF_UP)
        need(
            cents == Decimal(self.values[result]),
            f"{result} is {self.values[result]}, the rule gives {cents}",
        )

    def unread(self) -> None:
        need(self.answer["unread"] == self.document.unread, f"not read: {self.document.unread}")


def attempt(what: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except (Wrong, KeyError, TypeError, ArithmeticError) as reason:
        print(f"WRONG {what}: {reason if isinstance(reason, Wrong) else repr(reason)}")
        return False
    return True


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: check_document.py specs/NAME.toml", file=sys.stderr)
        return 2
    path = Path(sys.argv[1])
    answer = Path("out") / f"{path.stem}.json"
    if not answer.is_file():
        print(f"WRONG {answer} is missing")
        return 1
    try:
        checker = Checker(
            tomllib.loads(path.read_text(encoding="utf-8")), json.loads(answer.read_text())
        )
    except json.JSONDecodeError as reason:
        print(f"WRONG {answer} is no JSON: {reason}")
        return 1
    checks = [(name, lambda name=name: checker.field(name)) for name in checker.spec["fields"]]
    checks += [("lines", checker.lines), ("unread", checker.unread)]
    checks += [
        (f"rule {rule}", lambda rule=rule: checker.rule(rule))
        for rule in checker.spec.get("rules", [])
    ]
    passed = [attempt(what, check) for what, check in checks]
    print(f"{sum(passed)} of {len(passed)} checks hold for {answer}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
