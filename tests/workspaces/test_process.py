"""Programs that end, and those that do not want to (cases E6, E7, E8)."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from workspaces.process import Completed, run_process


async def sh(
    command: str, *, cwd: Path, timeout_s: float = 20, limit_bytes: int = 10_000, stdin: bytes = b"", merge: bool = True
) -> Completed:
    return await run_process(
        ["sh", "-c", command], cwd=cwd, env=dict(os.environ), timeout_s=timeout_s, limit_bytes=limit_bytes, merge_output=merge, stdin=stdin
    )


def dead(pid: int) -> bool:
    """Whether the process has ended; a process that was just killed has a second for that. A zombie is dead."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 1)[0])
    finally:
        os.close(handle)


def left_of(before: set[int]) -> list[psutil.Process]:
    """Our processes that were not there before and stay; one that was just killed has its time to go. Zombies of others are gone."""
    new = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    _, alive = psutil.wait_procs(new, timeout=10)
    return [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]


async def test_streams_are_kept_apart_or_merged(tmp_path: Path) -> None:
    apart = await sh("echo out; echo err >&2; exit 3", cwd=tmp_path, merge=False)
    assert (apart.exit_code, apart.stdout, apart.stderr, apart.timed_out) == (3, b"out\n", b"err\n", False)
    merged = await sh("echo out; echo err >&2", cwd=tmp_path)
    assert (merged.stdout, merged.stderr) == (b"out\nerr\n", b"")


async def test_stdin_holds_what_is_given_and_then_ends(tmp_path: Path) -> None:
    assert (await sh("cat", cwd=tmp_path, stdin=b"x" * 300_000, limit_bytes=1_000_000)).stdout == b"x" * 300_000
    asked = await sh("read answer || echo nobody there", cwd=tmp_path)
    assert asked.stdout == b"nobody there\n"


async def test_a_large_input_to_a_program_that_never_reads_blocks_nobody(tmp_path: Path) -> None:
    assert (await sh("exit 0", cwd=tmp_path, stdin=b"x" * 5_000_000)).exit_code == 0


@pytest.mark.parametrize(
    "command",
    ["sleep 600 & echo done $!", "(trap '' TERM; sleep 600) & echo done $!", "python3 -m http.server 0 >/dev/null 2>&1 & echo done $!"],
    ids=["holds the pipe", "ignores SIGTERM", "a server"],
)
async def test_e6_a_background_child_neither_delays_the_return_nor_survives_it(tmp_path: Path, command: str) -> None:
    started = time.monotonic()
    done = await sh(command, cwd=tmp_path)
    assert time.monotonic() - started < 2
    assert done.exit_code == 0
    assert done.stdout.startswith(b"done ")
    assert dead(int(done.stdout.split()[1]))


async def test_e6_a_child_that_left_the_session_does_not_delay_the_return(tmp_path: Path) -> None:
    code = "import os,sys,time\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    started = time.monotonic()
    done = await sh(f"{sys.executable} -c '{code}' & sleep 600", cwd=tmp_path, timeout_s=1)
    assert time.monotonic() - started < 3
    os.kill(int(done.stdout.split()[0]), signal.SIGKILL)


async def test_e6_a_command_that_ignores_sigterm_is_killed_at_its_limit(tmp_path: Path) -> None:
    done = await sh("trap '' TERM; echo begun; sleep 600", cwd=tmp_path, timeout_s=0.3)
    assert (done.exit_code, done.timed_out, done.stdout) == (None, True, b"begun\n")
    assert done.seconds < 2


async def test_a_signal_shows_as_a_negative_exit_code(tmp_path: Path) -> None:
    assert (await sh("kill -9 $$", cwd=tmp_path)).exit_code == -signal.SIGKILL


async def test_cancelling_kills_the_group(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    task = asyncio.create_task(sh("echo $$ > pid; sleep 600", cwd=tmp_path))
    pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert dead(pid)


async def test_cancelling_at_once_leaves_nothing_running(tmp_path: Path) -> None:
    started = time.monotonic()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    task = asyncio.create_task(sh("sleep 600; echo done", cwd=tmp_path))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    assert not left_of(before)


async def test_e8_head_and_tail_of_a_long_output_are_kept(tmp_path: Path) -> None:
    done = await sh("seq 1 30000; echo ERROR: real cause", cwd=tmp_path, limit_bytes=2_000)
    assert done.stdout.startswith(b"1\n2\n3\n")
    assert done.stdout.endswith(b"30000\nERROR: real cause\n")
    assert len(done.stdout) == 2_000
    assert done.dropped_bytes == sum(len(f"{n}\n") for n in range(1, 30_001)) + len(b"ERROR: real cause\n") - 2_000


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 25])
async def test_nothing_is_lost_up_to_the_limit_and_never_more_than_it_kept(tmp_path: Path, size: int) -> None:
    done = await sh(f"printf '%0{size}d' 0 | head -c {size}", cwd=tmp_path, limit_bytes=10)
    assert len(done.stdout) == min(size, 10)
    assert done.dropped_bytes == max(size - 10, 0)


async def test_e8_twenty_megabytes_in_one_line_cost_less_than_fifty(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = await sh("head -c 20000000 /dev/zero | tr '\\0' x", cwd=tmp_path, limit_bytes=100_000)
    unit = 1024 if sys.platform == "linux" else 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 50_000_000
    assert done.dropped_bytes == 20_000_000 - 100_000


async def test_a_program_or_folder_that_is_missing_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await run_process(["no-such-program"], cwd=tmp_path, env={}, timeout_s=5, limit_bytes=10)
    with pytest.raises(FileNotFoundError):
        await run_process(["sh", "-c", "true"], cwd=tmp_path / "gone", env={"PATH": os.environ["PATH"]}, timeout_s=5, limit_bytes=10)


@pytest.mark.slow
async def test_g16_five_hundred_runs_leave_no_descriptor_and_no_child(tmp_path: Path) -> None:
    await sh("true", cwd=tmp_path)
    me = psutil.Process()
    before, children = me.num_fds(), {child.pid for child in me.children()}
    for _ in range(500):
        await sh("true", cwd=tmp_path)
    assert me.num_fds() <= before + 2
    assert not [child for child in me.children() if child.pid not in children]
