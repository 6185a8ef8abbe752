"""The tools of an agent, the same for every task: validated, run, and answered with text that the model can act on."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from errno import EFBIG
from itertools import islice
from math import inf
from pathlib import Path

from agents.errors import ToolFailed
from agents.messages import ToolCall, ToolResult
from agents.model import ToolSchema
from agents.tools.arguments import AnyArguments, Edit, List, Note, Read, Run, Search, Submit, Write, parsed, schemas
from agents.tools.editing import replace_once
from agents.tools.searching import search
from agents.tools.text import bounded, cleaned, one_line
from workspaces.errors import PathRefused
from workspaces.files import list_files, read_file, walk_files, write_file
from workspaces.process import Completed
from workspaces.sandbox import Sandbox

FILE_LIMIT_BYTES = 4 * 1024 * 1024
"""Larger files are for commands; this much is read and edited faster than a thread is worth."""
OUTPUT_LIMIT_BYTES = 256 * 1024
LONGEST_LINE = 2_000
FEW_FILES = 200
SUMMARY_CHARACTERS = 80


class Toolbox:
    """Tools on one workspace: read, list, search, edit, write, run, note, submit."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self._root = root
        self._sandbox = sandbox

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The same order and bytes for every toolbox."""
        return schemas()

    def summary(self, call: ToolCall) -> str:
        """One short line for a person: the tool and what it is used on."""
        try:
            arguments = parsed(call)
        except ToolFailed:
            return one_line(f"{call.name} {call.arguments}", limit_characters=SUMMARY_CHARACTERS)
        match arguments:
            case Read(path=on) | List(path=on) | Edit(path=on) | Write(path=on) | Run(command=on) | Note(text=on) | Submit(summary=on):
                pass
            case Search(pattern=pattern, path=path):
                on = f"{pattern} in {path}"
        return one_line(f"{call.name} {on}", limit_characters=SUMMARY_CHARACTERS)

    async def call(self, call: ToolCall, *, within_s: float = inf) -> ToolResult:
        """Validate and run one call. What the model did wrong is a result with `ok` False, and so is a command that did not exit with 0.

        A command gets `within_s` at most. Raises `WorkspaceError` when the sandbox is down.
        """
        began = time.perf_counter()
        try:
            text, ok = await self._answer(parsed(call), within_s)
        except (ToolFailed, PathRefused) as failure:
            text, ok = str(failure), False
        return ToolResult(call_id=call.id, name=call.name, text=text, ok=ok, seconds=time.perf_counter() - began)

    async def _answer(self, arguments: AnyArguments, within_s: float) -> tuple[str, bool]:
        match arguments:
            case Read(path=path, offset=offset, limit=limit):
                return _numbered(self._text(path), offset, limit), True
            case List(path=path):
                with _told(path):
                    return self._listing(path), True
            case Search(pattern=pattern, path=path):
                return await search(self._sandbox, pattern, path), True
            case Edit():
                return self._edit(arguments), True
            case Write(path=path, content=content):
                data = content.encode()
                with _told(path):
                    write_file(self._root, path, data)
                return f"Wrote {path}: {len(data):,} bytes.", True
            case Run(command=command, timeout_s=timeout_s):
                timeout_s = min(timeout_s, max(1.0, within_s))
                done = await self._sandbox.run(command, timeout_s=timeout_s, limit_bytes=OUTPUT_LIMIT_BYTES)
                return _output(done, timeout_s), done.exit_code == 0
            case Note():
                return "Noted for the reviewer.", True
            case Submit():
                return "Submitted.", True

    def _text(self, path: str) -> bytes:
        with _told(path):
            data = read_file(self._root, path, limit_bytes=FILE_LIMIT_BYTES)
        if b"\0" in data[:8192]:
            raise ToolFailed(f"{path} is a binary file of {len(data):,} bytes. Use `run` with a program that understands it.")
        return data

    def _edit(self, arguments: Edit) -> str:
        edited = replace_once(self._text(arguments.path), arguments.old, arguments.new)
        with _told(arguments.path):
            write_file(self._root, arguments.path, edited.data)
        if edited.first_line == edited.last_line:
            return f"Edited {arguments.path}, line {edited.first_line}."
        return f"Edited {arguments.path}, now lines {edited.first_line} to {edited.last_line}."

    def _listing(self, path: str) -> str:
        entries = list_files(self._root, path)
        files = list(islice(walk_files(self._root, path), FEW_FILES + 1))
        if not entries:
            return "The folder is empty."
        if files and len(files) <= FEW_FILES:
            return "\n".join(files)
        shown = "\n".join(
            f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}{'@' * (entry.kind == 'link')}" for entry in entries
        )
        return bounded(shown) + (f"\n[more than {FEW_FILES} files beneath; list a folder to see its files]" if files else "")


@contextmanager
def _told(path: str) -> Generator[None]:
    """What the file system says, in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolFailed(f"There is no {path}. Use `list` to see what there is.") from None
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder.") from None
    except OSError as error:
        if error.errno == EFBIG:
            raise ToolFailed(
                f"{path} is larger than {FILE_LIMIT_BYTES // 2**20} MiB. Use `run` with head, tail, sed or the like."
            ) from None
        raise ToolFailed(f"{path}: {error.strerror or error}.") from None


def _numbered(data: bytes, offset: int, limit: int) -> str:
    """Lines as people number them. Bytes that are no UTF-8 show as escapes; long lines and long parts are cut and say so."""
    lines = data.decode("utf-8-sig", errors="backslashreplace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return "The file is empty."
    if offset > len(lines):
        raise ToolFailed(f"The file has {len(lines)} lines; offset {offset} is behind its end.")
    shown = lines[offset - 1 : offset - 1 + limit]
    numbered = [f"{number:>6}\t{_short(line.removesuffix(chr(13)))}" for number, line in enumerate(shown, offset)]
    last = offset + len(shown) - 1
    rest = [f"[lines {offset} to {last} of {len(lines)}; go on with offset {last + 1}]"] if last < len(lines) else []
    return bounded("\n".join([*numbered, *rest]), limit_characters=60_000)


def _short(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}[… {len(line) - LONGEST_LINE:,} more characters]"


def _output(done: Completed, timeout_s: float) -> str:
    if done.timed_out:
        head = f"Timed out after {timeout_s:g} s and was ended with all it had started. Output so far:"
    elif done.exit_code is not None and done.exit_code < 0:
        head = f"Ended by signal {-done.exit_code}."
    else:
        head = f"exit code {done.exit_code}"
    output = bounded(cleaned(done.stdout), dropped_bytes=done.dropped_bytes).strip("\n")
    return f"{head}\n{output}" if output else f"{head}, no output" if not done.timed_out else head.removesuffix(" Output so far:")
