"""Text with hard line ends made to fit any width: lines of one paragraph become one, lists and code stay as they are. Pure."""

from __future__ import annotations

import re

# Beyond this a line would be cut on the screen.
LONGEST = 1_500

_STANDS_ALONE = re.compile(r"\s|[-*+•#>|`]|\d+[.)]|$")


def reflowed(text: str) -> str:
    """`text` with the lines of each paragraph joined.

    Left alone: what is indented, lists, headings, quotes, tables and everything between fences of backticks.
    """
    lines: list[str] = []
    fenced = joinable = False
    for given in text.replace("\r\n", "\n").split("\n"):
        fence = given.startswith("```")
        plain = not fenced and not _STANDS_ALONE.match(given)
        if plain and joinable and len(lines[-1]) + len(given) < LONGEST:
            lines[-1] = f"{lines[-1].rstrip()} {given}"
        else:
            lines.append(given)
        fenced = fenced != fence
        joinable = plain
    return "\n".join(lines)
