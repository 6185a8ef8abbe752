"""The text of simple PDF files, line by line.

Reads: Flate or plain streams, fonts with WinAnsi, MacRoman or standard encoding, the text
operators, pages in the order of the page tree.
Does not read: object streams, encryption, composite fonts, ligatures, text inside images
or forms. What it cannot read it says; it never guesses.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

OBJECT = re.compile(rb"(\d+)\s+\d+\s+obj\b(.*?)\bendobj", re.S)
REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R")
TOKEN = re.compile(
    rb"\((?:\\.|[^\\()]|\((?:\\.|[^\\()])*\))*\)|<[0-9A-Fa-f\s]*>|\[|\]|/[^\s/\[\]()<>]+|"
    rb"[+-]?(?:\d+\.?\d*|\.\d+)|[A-Za-z'\"*]+",
    re.S,
)
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


class Unreadable(Exception):
    """The file uses something that this reader does not know."""


def read_pages(path: Path) -> list[list[str]]:
    """The lines of each page from top to bottom; an empty list for a page without text."""
    data = path.read_bytes()
    if not data.startswith(b"%PDF-"):
        raise Unreadable(f"{path} is no PDF file")
    if b"/Encrypt" in data:
        raise Unreadable(f"{path} is encrypted")
    if b"/ObjStm" in data:
        raise Unreadable(f"{path} keeps its objects in object streams")
    objects = {int(number): body for number, body in OBJECT.findall(data)}
    root = _named(objects, b"/Catalog")
    return [_lines(_content(objects, page)) for page in _pages(objects, _target(root, b"Pages"))]


def _named(objects: dict[int, bytes], kind: bytes) -> bytes:
    for body in objects.values():
        if re.search(rb"/Type\s*" + kind + rb"\b", body):
            return body
    raise Unreadable("no page tree")


def _target(body: bytes, key: bytes) -> int:
    found = re.search(rb"/" + key + rb"\s+(\d+)\s+\d+\s+R", body)
    if not found:
        raise Unreadable(f"no /{key.decode()}")
    return int(found.group(1))


def _pages(objects: dict[int, bytes], number: int) -> list[bytes]:
    body = objects[number]
    kids = re.search(rb"/Kids\s*\[(.*?)\]", body, re.S)
    if not kids:
        if b"/Type0" in b"".join(
            objects[int(n)] for n in REFERENCE.findall(body) if int(n) in objects
        ):
            raise Unreadable("a page uses a composite font")
        return [body]
    return [page for kid in REFERENCE.findall(kids.group(1)) for page in _pages(objects, int(kid))]


def _content(objects: dict[int, bytes], page: bytes) -> bytes:
    found = re.search(rb"/Contents\s*(\[.*?\]|\d+\s+\d+\s+R)", page, re.S)
    if not found:
        return b""
    return b"\n".join(_stream(objects[int(n)]) for n in REFERENCE.findall(found.group(1)))


def _stream(body: bytes) -> bytes:
    head, _, rest = body.partition(b"stream")
    raw = rest.lstrip(b"\r").removeprefix(b"\n").rpartition(b"endstream")[0]
    filters = re.findall(rb"/(\w+Decode)\b", head)
    if filters == [b"FlateDecode"]:
        return zlib.decompressobj().decompress(raw)
    if filters:
        raise Unreadable(f"a stream is packed with {b' '.join(filters).decode()}")
    return raw


def _lines(content: bytes) -> list[str]:
    """Text pieces by their height on the page, then from left to right."""
    rows: dict[int, list[tuple[float, str]]] = {}
    for x, y, text in _pieces(content):
        rows.setdefault(round(y), []).append((x, text))
    joined = ("  ".join(text for _, text in sorted(rows[y])) for y in sorted(rows, reverse=True))
    return [line for line in joined if line.strip()]


def _pieces(content: bytes) -> list[tuple[float, float, str]]:
    found: list[tuple[float, float, str]] = []
    operands: list[bytes] = []
    x = y = leading = 0.0
    for token in TOKEN.findall(content):
        if token[:1] in b"(<[]/+-.0123456789":
            operands.append(token)
            continue
        match token:
            case b"BT":
                x = y = 0.0
            case b"Tm":
                x, y = (float(number) for number in operands[-2:])
            case b"TL":
                leading = float(operands[-1])
            case b"Td" | b"TD":
                right, up = (float(number) for number in operands[-2:])
                x, y = x + right, y + up
                leading = -up if token == b"TD" else leading
            case b"T*" | b"'" | b'"':
                y -= leading
        if token in (b"Tj", b"TJ", b"'", b'"'):
            strings = [part for part in operands if part[:1] in b"(<"]
            found.append((x, y, "".join(_decode(part) for part in strings)))
        operands.clear()
    return found


def _decode(literal: bytes) -> str:
    if literal.startswith(b"<"):
        return bytes.fromhex(literal[1:-1].decode()).decode("cp1252", "replace")

    def plain(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        return bytes([int(code, 8)]) if code.isdigit() else ESCAPES.get(code, code)

    text = re.sub(rb"\\([0-7]{1,3}|.)", plain, literal[1:-1], flags=re.S)
    return text.decode("cp1252", "replace")
