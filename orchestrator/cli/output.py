"""What is printed. Text of others goes through `visible` or `one_line` first (see `orchestrator.visible`)."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence

import click
import msgspec

from orchestrator.visible import visible as harmless


def visible(text: str) -> str:
    """`text` with every character that a terminal would obey or hide written out as an escape. Tab and newline stay."""
    return harmless(text, kept="\t\n")


def one_line(text: str) -> str:
    """The same for a table or a status line: white space is one blank."""
    return harmless(" ".join(text.split()))


def print_json(document: object) -> None:
    """One JSON document on stdout, UTF-8 whatever the locale."""
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.buffer.flush()


def say(line: str = "") -> None:
    """A line of output on stdout. The caller has made foreign text visible."""
    click.echo(line)


def note(line: str) -> None:
    """A line beside the output, on stderr."""
    click.echo(line, err=True)


def fail(message: str, hint: str = "", code: int = 1) -> int:
    """Print `error: …`, an empty line and `hint: …` on stderr; gives the exit status back."""
    note(f"error: {visible(message)}")
    if hint:
        note(f"\nhint: {visible(hint)}")
    return code


def on_terminal() -> bool:
    return sys.stdout.isatty()


def coloured() -> bool:
    """Colour only on a terminal that has some, and not against `NO_COLOR` (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """`text` in a colour ('bold' is one), or as it is where colour is not wanted."""
    if not coloured():
        return text
    return click.style(text, bold=True) if colour == "bold" else click.style(text, fg=colour)


def columns() -> int | None:
    """The width to fit into; None when nobody said (output goes to a file or a pipe)."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return max(40, shutil.get_terminal_size().columns)
    return None


def width(text: str) -> int:
    """Cells that `text` takes in a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, cells: int) -> str:
    """`text` cut to at most `cells`, with '…' when something is missing."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for character in text:
        if used + _cells(character) > cells - 1:
            break
        kept, used = kept + character, used + _cells(character)
    return kept + "…"


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), room: int | None = None
) -> list[str]:
    """Lines of a table. The last column gives way first when `room` is short, then the widest. `right`: columns of numbers."""
    wanted = [max(width(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    if room is not None:
        _shrink(wanted, room)
    return [_table_line(row, wanted, right) for row in [headers, *rows]]


def _shrink(wanted: list[int], room: int) -> None:
    spare = sum(wanted) + 2 * (len(wanted) - 1) - room
    for column in [len(wanted) - 1, *sorted(range(len(wanted) - 1), key=lambda i: -wanted[i])]:
        give = min(max(spare, 0), max(wanted[column] - 8, 0))
        wanted[column] -= give
        spare -= give


def _table_line(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    cells: list[str] = []
    for i, (text, cell) in enumerate(zip(row, widths, strict=True)):
        text = clip(text, cell)
        blank = " " * (cell - width(text))
        cells.append(blank + text if i in right else text + blank)
    return "  ".join(cells).rstrip()


def count(number: int | None) -> str:
    """1234567 as '1.2M', None as '—'."""
    if number is None:
        return "—"
    if number < 10_000:
        return str(number)
    return f"{number / 1e3:.0f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"


def plural(number: int, noun: str) -> str:
    """'1 file', '3 files'."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def age(seconds: float | None) -> str:
    """'42s', '3m', '5h', '2d'; None as '—'."""
    if seconds is None:
        return "—"
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f}{name}"
    return f"{seconds / 86_400:.0f}d"


def rate(per_s: float | None) -> str:
    return "—" if per_s is None else f"{per_s:,.0f}"
