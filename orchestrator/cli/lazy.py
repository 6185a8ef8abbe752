"""A click group that knows its commands by name and summary, and imports a command only to run it or to show its own help."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: where it is defined and what the group's help says about it."""

    name: str
    module: str
    attribute: str
    summary: str


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    entries: tuple[Entry, ...]


class LazyGroup(click.Group):
    """Lists its sections without importing anything. `sections` is set once, right after the group is made."""

    sections: Sequence[Section] = ()

    def entries(self) -> dict[str, Entry]:
        return {entry.name: entry for section in self.sections for entry in section.entries}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries().get(cmd_name)
        if entry is None:
            return None
        return getattr(importlib.import_module(f"orchestrator.cli.{entry.module}"), entry.attribute)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries() and not name.startswith("-"):
            near = difflib.get_close_matches(name, list(self.entries()), n=2)
            meant = f" (did you mean {' or '.join(f'`{one}`' for one in near)}?)" if near else ""
            raise click.UsageError(f"there is no command `{name}`{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.entries())
        for section in self.sections:
            with formatter.section(section.title):
                formatter.write_dl([(entry.name.ljust(width), entry.summary) for entry in section.entries])
