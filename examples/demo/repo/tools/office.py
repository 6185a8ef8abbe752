"""The text of DOCX, XLSX and HTML files with its places."""

from __future__ import annotations

import re
import zipfile
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
BUILT_IN_DATES = {*range(14, 23), 45, 46, 47}

Cells = list[tuple[str, str]]
"""Place and text of each cell of a row."""


def docx_rows(path: Path) -> list[tuple[str, Cells]]:
    """Paragraphs (no cells) and table rows in the order of the document."""
    with zipfile.ZipFile(path) as archive:
        body = ElementTree.fromstring(archive.read("word/document.xml"))[0]
    rows: list[tuple[str, Cells]] = []
    paragraphs = tables = 0
    for element in body:
        if element.tag == W + "p":
            paragraphs += 1
            rows.append((f"paragraph {paragraphs}", [("", _word_text(element))]))
        elif element.tag == W + "tbl":
            tables += 1
            for number, row in enumerate(element.iter(W + "tr"), 1):
                place = f"table {tables} row {number}"
                texts = [_word_text(cell) for cell in row.iter(W + "tc")]
                rows.append((place, _numbered(place, texts)))
    return rows


def _word_text(element: ElementTree.Element) -> str:
    parts = {
        W + "t": lambda node: node.text or "",
        W + "tab": lambda _: "\t",
        W + "br": lambda _: " ",
    }
    return "".join(parts[node.tag](node) for node in element.iter() if node.tag in parts)


def _numbered(place: str, texts: list[str]) -> Cells:
    return [(f"{place} cell {number}", text) for number, text in enumerate(texts, 1)]


def xlsx_rows(path: Path) -> tuple[list[tuple[str, Cells]], list[str], list[str]]:
    """The rows of all visible sheets, the cells not calculated, and the hidden sheets."""
    rows: list[tuple[str, Cells]] = []
    formulas: list[str] = []
    hidden: list[str] = []
    with zipfile.ZipFile(path) as archive:
        strings = _shared_strings(archive)
        dates = _date_styles(archive)
        for name, state, part in _sheets(archive):
            if state != "visible":
                hidden.append(f"sheet {name}")
                continue
            for row in ElementTree.fromstring(archive.read(part)).iter(S + "row"):
                cells = [(f"{name}!{c.get('r')}", _cell_text(c, strings, dates)) for c in row]
                cells = [cell for cell in cells if cell[1]]
                formulas += [at for at, text in cells if text.startswith("=")]
                if cells:
                    first, last = cells[0][0], cells[-1][0].partition("!")[2]
                    rows.append((f"{first}:{last}" if len(cells) > 1 else first, cells))
    return rows, formulas, hidden


def _shared_strings(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    table = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
    return ["".join(t.text or "" for t in item.iter(S + "t")) for item in table.iter(S + "si")]


def _date_styles(archive: zipfile.ZipFile) -> set[str]:
    """The style numbers that show a serial number as a date."""
    styles = ElementTree.fromstring(archive.read("xl/styles.xml"))
    own = {
        int(form.get("numFmtId", "0"))
        for form in styles.iter(S + "numFmt")
        if re.search(r"[yd]", re.sub(r'"[^"]*"|\[[^\]]*\]', "", form.get("formatCode", "")), re.I)
    }
    formats = styles.find(S + "cellXfs")
    numbers = [int(form.get("numFmtId", "0")) for form in formats] if formats is not None else []
    return {str(i) for i, number in enumerate(numbers) if number in BUILT_IN_DATES | own}


def _sheets(archive: zipfile.ZipFile) -> list[tuple[str, str, str]]:
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    parts = {item.get("Id"): item.get("Target", "") for item in relations}
    workbook = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    return [
        (
            sheet.get("name", ""),
            sheet.get("state", "visible"),
            "xl/" + parts[sheet.get(R + "id")].removeprefix("/xl/"),
        )
        for sheet in workbook.iter(S + "sheet")
    ]


def _cell_text(cell: ElementTree.Element, strings: list[str], dates: set[str]) -> str:
    value, formula = cell.findtext(S + "v"), cell.findtext(S + "f")
    if formula is not None and not value:
        return f"={formula}"
    if cell.get("t") == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(S + "t"))
    if not value:
        return ""
    if cell.get("t") == "s":
        return strings[int(value)]
    if cell.get("t") in (None, "n"):
        if cell.get("s") in dates:
            return f"{datetime(1899, 12, 30) + timedelta(days=float(value)):%Y-%m-%d}"
        return f"{float(value):.15g}"  # a spreadsheet shows 15 digits, the file holds 17
    return value


class _Page(HTMLParser):
    BLOCKS = {"h1", "h2", "h3", "h4", "p", "li", "dt", "dd", "caption", "address"}
    SKIPPED = {"script", "style", "head", "template"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[tuple[str, Cells]] = []
        self.counts: dict[str, int] = {}
        self.skipping = 0
        self.text: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.SKIPPED:
            self.skipping += 1
        if tag == "table":
            self.counts["row"] = 0
        if tag in self.BLOCKS | {"table"}:
            self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag in self.BLOCKS | {"td", "th"}:
            self.text = []
        if tag == "tr":
            self.cells = []
        if tag == "br":
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self.text).split())
        if tag in self.SKIPPED:
            self.skipping -= 1
        if tag in self.BLOCKS:
            self.rows.append((f"{tag} {self.counts[tag]}", [("", text)]))
        if tag in {"td", "th"}:
            self.cells.append(text)
        if tag == "tr":
            self.counts["row"] += 1
            place = f"table {self.counts['table']} row {self.counts['row']}"
            self.rows.append((place, _numbered(place, self.cells)))

    def handle_data(self, data: str) -> None:
        if not self.skipping:
            self.text.append(data)


def html_rows(path: Path) -> list[tuple[str, Cells]]:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page.rows
