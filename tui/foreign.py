"""Text from outside (models, files, tasks, errors) made fit for the dashboard's lines: harmless (see `orchestrator.visible`) and not endless.

Does not cover: markup. Nothing here or in the widgets parses markup, so brackets are only brackets.
"""

from __future__ import annotations

from orchestrator.visible import visible as harmless

TAB = "    "


def visible(text: str, *, limit: int = 2_000) -> str:
    """`text` without a character that a terminal would obey, those as `\\x1b`, `\\u202e`; tabs as four spaces.

    A newline is escaped too: split first. What lies beyond `limit` characters is counted, not shown.
    """
    shown = harmless(text[:limit].replace("\t", TAB).replace("\u00a0", " "))
    beyond = len(text) - limit
    return shown if beyond <= 0 else f"{shown} … {beyond:,} characters more"


def lines_of(text: str, *, limit: int = 2_000, most: int = 2_000) -> list[str]:
    """The visible lines of `text`, at most `most` of them; the last one then says how many are missing."""
    # Not splitlines(): it would break at form feeds and separators, which are to be seen.
    found = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    shown = [visible(line, limit=limit) for line in found[:most]]
    if len(found) > most:
        shown.append(f"… {len(found) - most:,} lines more")
    return shown


def one_line(text: str, *, limit: int = 400) -> str:
    """`text` as one visible line, runs of white space as one space."""
    return visible(" ".join(text[: 4 * limit].split()), limit=limit)
