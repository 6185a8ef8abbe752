"""Commands that a killed station left running: ended at the next start, before their folders are worked in again.

Covers: commands without a sandbox, known by the mark in their environment and by standing in one of this home's workspaces or checkouts.
Does not cover: one of those that went to another folder. Sandboxed commands die with their station by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from workspaces.local import TOKEN

PATIENCE_S = 2.0


def end_leftovers(*folders: Path) -> list[int]:
    """Kill them; their pids. Blocks: run it in a thread. Whoever calls holds the home's lock, so that none of them is at work for anybody."""
    roots = [folder.resolve() for folder in folders]
    left = [process for process in psutil.process_iter() if _ours(process, roots)]
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue  # it ended by itself
    psutil.wait_procs(left, timeout=PATIENCE_S)
    return [process.pid for process in left]


def _ours(process: psutil.Process, roots: Sequence[Path]) -> bool:
    try:
        if process.uids().real != os.getuid() or TOKEN not in process.environ():
            return False
        stands_in = Path(process.cwd())
    except (psutil.Error, OSError):
        return False  # another user's, or gone meanwhile
    return any(stands_in.is_relative_to(root) for root in roots)
