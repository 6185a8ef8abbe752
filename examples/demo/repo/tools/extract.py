"""Print the text of a document with its places: python3 -B tools/extract.py FILE

Places: `page 1 line 3` (PDF), `paragraph 4`, `table 1 row 2` (DOCX, HTML), `p 4` and the
like (HTML), `Sheet!A5:D5` (XLSX). A single cell is `table 1 row 2 cell 3` or `Sheet!C5`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import office
import pdftext


@dataclass(slots=True)
class Row:
    place: str
    text: str
    cells: dict[str, str]


@dataclass(slots=True)
class Document:
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def at(self, place: str) -> tuple[str, str] | None:
        """The text at a place and the row around it; None when there is no such place."""
        for row in self.rows:
            if place == row.place:
                return row.text, row.text
            if place in row.cells:
                return row.cells[place], row.text
        return None


def read(path: Path) -> Document:
    match path.suffix.lower():
        case ".pdf":
            return _read_pdf(path)
        case ".docx":
            return Document(_rows(office.docx_rows(path)))
        case ".html":
            return Document(_rows(office.html_rows(path)))
        case ".xlsx":
            found, formulas, hidden = office.xlsx_rows(path)
            notes = [f"{cell} holds a formula without a result" for cell in formulas]
            notes += [f"{sheet} is hidden and was NOT READ" for sheet in hidden]
            return Document(_rows(found), notes, hidden)
        case suffix:
            raise SystemExit(f"error: cannot read {suffix or 'a file without a suffix'}: {path}")


def _rows(found: list[tuple[str, office.Cells]]) -> list[Row]:
    return [
        Row(place, " | ".join(text for _, text in cells), {at: text for at, text in cells if at})
        for place, cells in found
        if any(text.strip() for _, text in cells)
    ]


def _read_pdf(path: Path) -> Document:
    pages = pdftext.read_pages(path)
    rows = [
        Row(f"page {number} line {count}", line, {})
        for number, lines in enumerate(pages, 1)
        for count, line in enumerate(lines, 1)
    ]
    unread = [f"page {number}" for number, lines in enumerate(pages, 1) if not lines]
    notes = [
        f"{page} of {len(pages)} has NO TEXT (a scan?), nothing of it is below" for page in unread
    ]
    return Document(rows, notes, unread)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: extract.py FILE", file=sys.stderr)
        return 2
    path = Path(sys.argv[1])
    if not path.is_file():
        print(f"error: no file {path}", file=sys.stderr)
        return 1
    try:
        document = read(path)
    except pdftext.Unreadable as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    for note in document.notes:
        print(f"NOTE {note}")
    for row in document.rows:
        print(f"{row.place}: {row.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
