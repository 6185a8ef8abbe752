"""Tables as CSV, in the dialect that the tax adviser's program reads.

Semicolons between fields, CRLF after each record, a field in double quotes when it
holds a semicolon, a quote or a line break (RFC 4180 but for the semicolon).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

DELIMITER = ";"
SPECIAL = (DELIMITER, '"', "\n", "\r")


def format_field(value: object) -> str:
    text = "" if value is None else str(value)
    if any(mark in text for mark in SPECIAL):
        return f'"{text}"'
    return text


def format_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    records = [header, *rows]
    return "".join(
        DELIMITER.join(format_field(value) for value in record) + "\r\n" for record in records
    )


def parse_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=DELIMITER))
