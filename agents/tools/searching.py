"""Searching with grep inside the sandbox: its matcher takes time in proportion to the text, and the sandbox ends it in any case."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from agents.errors import ToolFailed
from agents.tools.text import bounded, cleaned
from workspaces.process import Completed
from workspaces.sandbox import Sandbox

TIMEOUT_S = 20.0
LONGEST_LINE = 300
MOST_LINES = 200
_LIMIT_BYTES = 512 * 1024


async def search(sandbox: Sandbox, pattern: str, path: str) -> str:
    if path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise ToolFailed("`path` must lie inside the workspace: give it relative to the workspace's top folder.")
    if "\n" in pattern:
        raise ToolFailed("`pattern` must be one line: grep matches line by line.")
    words = ["grep", "-rnIE", "--exclude-dir=.git", "-e", extended(pattern), "--", path]
    done = await sandbox.run(shlex.join(words), timeout_s=TIMEOUT_S, limit_bytes=_LIMIT_BYTES)
    if done.timed_out:
        raise ToolFailed(f"The search took longer than {TIMEOUT_S:.0f} s. Search in a smaller folder or for a simpler pattern.")
    if done.exit_code == 1:
        return "No line matches."
    if done.exit_code != 0 and not _found_some(done):
        raise ToolFailed(f"grep: {bounded(cleaned(done.stdout), limit_characters=500).strip()}")
    return _shown(done)


def _found_some(done: Completed) -> bool:
    """grep also exits with 2 when it found lines but could not read some file."""
    return any(not line.startswith(b"grep:") for line in done.stdout.splitlines())


def _shown(done: Completed) -> str:
    lines = cleaned(done.stdout).splitlines()
    cut = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines[:MOST_LINES]]
    more = len(lines) - len(cut)
    if more or done.dropped_bytes:
        cut.append(f"[… {'many' if done.dropped_bytes else more} more lines: search for something more specific or in a smaller folder …]")
    return "\n".join(cut)


def extended(pattern: str) -> str:
    r"""`\d` and `\D` as grep -E knows them, inside and outside of brackets; all else as it is."""
    out: list[str] = []
    at, in_bracket = 0, False
    while at < len(pattern):
        pair = pattern[at : at + 2]
        if pair in (r"\d", r"\D") and not (in_bracket and pair == r"\D"):
            out.append("0-9" if in_bracket else "[0-9]" if pair == r"\d" else "[^0-9]")
            at += 2
        elif pair[0] == "\\" and not in_bracket:
            out.append(pair)
            at += 2
        else:
            in_bracket = pair[0] == "[" if not in_bracket else pair[0] != "]"
            out.append(pair[0])
            at += 1
    return "".join(out)
