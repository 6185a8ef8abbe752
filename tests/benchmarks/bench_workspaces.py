"""How long 32 workspaces take, against a plain loop of 32 `git worktree add`, in the same run.

    python tests/benchmarks/bench_workspaces.py [--files 10000] [--workspaces 32] [--rounds 3] [--at-once 4] [--folder DIR]

The repository holds 15 MB of text in 10,000 files. Both ways take turns on the same file system, from a warm cache, and what one made is removed
before the other begins. The target is a ratio of at most 0.8, of the medians of the rounds; the exit code says whether it was met.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, f"{Path(__file__).parents[2]}")

from asyncio_pool import AioPool

from workspaces.hub import Hub, open_hub, resolve_base
from workspaces.snapshot import take_snapshot
from workspaces.workspace import Workspace, create_workspace

TARGET = 0.8


def git(where: Path, *args: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": f"{where}", "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *identity, *args], cwd=where, env=env, check=True, capture_output=True)


def make_repository(path: Path, files: int) -> None:
    for number in range(files):
        file = path / f"folder-{number // 100}" / f"file-{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{number} {line} of a file with some lines of text in it\n" for line in range(32)))
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "-A")
    git(path, "-c", "gc.auto=0", "commit", "-q", "-m", "first")
    git(path, "gc", "-q")  # as a repository is that has been in use; and not in the background, in the middle of a round


def plain_loop(repo: Path, where: Path, count: int) -> float:
    """Seconds for a loop of `git worktree add`; the trees are removed afterwards."""
    started = time.monotonic()
    for number in range(count):
        git(repo, "worktree", "add", "--no-track", "-b", f"plain-{number}", f"{where / f'plain-{number}'}")
    seconds = time.monotonic() - started
    for number in range(count):
        shutil.rmtree(where / f"plain-{number}")
    git(repo, "worktree", "prune")
    git(repo, "branch", "-D", *(f"plain-{number}" for number in range(count)))
    return seconds


async def our_way(hub: Hub, base: str, where: Path, count: int, at_once: int, round_: int) -> tuple[float, float, float]:
    """Seconds for all workspaces, for a first snapshot of one, and for another of the same when nothing has changed."""

    async def one(number: int) -> Workspace:
        return await create_workspace(hub, root=where, task=f"bench-{round_}-{number}", attempt=1, base_commit=base)

    started = time.monotonic()
    async with AioPool(size=at_once) as pool:
        made = await pool.map(one, range(count))
    seconds = time.monotonic() - started
    assert all(isinstance(workspace, Workspace) for workspace in made), made
    first = await timed_snapshot(made[0])
    again = await timed_snapshot(made[0])
    await asyncio.to_thread(shutil.rmtree, where)
    return seconds, first, again


async def timed_snapshot(workspace: Workspace) -> float:
    started = time.monotonic()
    await take_snapshot(workspace, message="bench")
    return time.monotonic() - started


def table(title: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (title, *rows)) for column in range(len(title))]
    for row in (title, ["-" * width for width in widths], *rows):
        print(
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )


async def bench(folder: Path, options: argparse.Namespace) -> float:
    repo = folder / "repo"
    repo.mkdir()
    make_repository(repo, options.files)
    base = await resolve_base(repo, None)
    hub = await open_hub(base.repo, hubs=folder / "hubs", commit=base.commit)
    plain: list[float] = []
    ours: list[tuple[float, float, float]] = []
    for round_ in range(options.rounds):
        plain.append(await asyncio.to_thread(plain_loop, repo, folder, options.workspaces))
        ours.append(await our_way(hub, base.commit, folder / "workspaces", options.workspaces, options.at_once, round_))
    ratio = statistics.median(times[0] for times in ours) / statistics.median(plain)
    print(f"{options.workspaces} workspaces of {options.files:,} files, {os.cpu_count()} cores, {options.rounds} rounds\n")
    table(
        ("way", *(f"round {number + 1} (s)" for number in range(options.rounds)), "median (s)"),
        [
            ("git worktree add, one after the other", *(f"{s:.1f}" for s in plain), f"{statistics.median(plain):.1f}"),
            (f"workspaces, {options.at_once} at once", *(f"{s[0]:.1f}" for s in ours), f"{statistics.median(s[0] for s in ours):.1f}"),
            ("first snapshot of one", *(f"{s[1]:.3f}" for s in ours), f"{statistics.median(s[1] for s in ours):.3f}"),
            ("snapshot, nothing changed", *(f"{s[2]:.3f}" for s in ours), f"{statistics.median(s[2] for s in ours):.3f}"),
        ],
    )
    print(f"\nratio {ratio:.2f} (target at most {TARGET})")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--workspaces", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=max(4, os.cpu_count() or 1))
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-workspaces-", dir=options.folder) as folder:
        ratio = asyncio.run(bench(Path(folder).resolve(), options))
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
