"""Receipts as HTML, for the mail that goes to the customer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from tillbook.money import Money


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    pieces: int
    total: Money
    photo: str = ""


def line_html(line: Line) -> str:
    picture = ""
    if line.photo:
        picture = f'<img src="/photos/{quote(line.photo)}" alt="{line.name}">'
    return f"<tr><td>{picture}{line.name}</td><td>{line.pieces}</td><td>{line.total}</td></tr>"


def receipt_html(title: str, lines: Sequence[Line], total: Money) -> str:
    rows = "\n".join(line_html(line) for line in lines)
    return (
        f"<h1>{title}</h1>\n<table>\n{rows}\n"
        f'<tr class="total"><td>Total</td><td></td><td>{total}</td></tr>\n</table>\n'
    )
