"""The hubs of a station, opened once per repository and commit however many attempts ask at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workspaces.hub import Hub, open_hub


class Hubs:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], Hub] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def open(self, repo: str, commit: str) -> Hub:
        """The hub of `repo`, with `commit` in it. Raises RepositoryUnusable or GitFailed."""
        known = self._known.get((repo, commit))
        if known is not None and known.path.exists():
            return known
        async with self._locks.setdefault(repo, asyncio.Lock()):
            known = self._known.get((repo, commit))
            if known is None or not known.path.exists():
                known = await open_hub(Path(repo), hubs=self._folder, commit=commit)
                self._known[repo, commit] = known
            return known
