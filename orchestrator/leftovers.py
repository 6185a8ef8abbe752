"""Commands that a killed station left running: ended at the next start, before their workspaces are worked in again.

Covers: commands without a sandbox, known by the mark in their environment and by standing in one of this home's workspaces.
Does not cover: one of those that went to another folder. Sandboxed commands die with their station by themselves.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from workspaces.local import TOKEN

PATIENCE_S = 2.0


def end_leftovers(workspaces: Path) -> list[int]:
    """Kill them; their pids. Blocks: run it in a thread. Whoever calls holds the home's lock, so that none of them is at work for anybody."""
    root = workspaces.resolve()
    left = [process for process in psutil.process_iter() if _ours(process, root)]
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue  # it ended by itself
    psutil.wait_procs(left, timeout=PATIENCE_S)
    return [process.pid for process in left]


def _ours(process: psutil.Process, root: Path) -> bool:
    try:
        return process.uids().real == os.getuid() and TOKEN in process.environ() and Path(process.cwd()).is_relative_to(root)
    except (psutil.Error, OSError):
        return False  # another user's, or gone meanwhile
