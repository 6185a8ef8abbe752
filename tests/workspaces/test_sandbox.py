"""One contract for every sandbox (cases E6, E7, E8), and what bubblewrap hides besides (cases G09, G11)."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from workspaces.bubblewrap import BubblewrapSandbox, bubblewrap_problem, open_sandbox
from workspaces.errors import SandboxUnavailable
from workspaces.sandbox import Sandbox
from workspaces.snapshot import take_snapshot
from workspaces.workspace import Workspace

PROBLEM = asyncio.run(bubblewrap_problem())
needs_bubblewrap = pytest.mark.skipif(PROBLEM is not None, reason=f"{PROBLEM}")


@pytest.fixture
async def workspace(station) -> Workspace:
    return await station.workspace()


@pytest.fixture(params=[pytest.param("bubblewrap", marks=needs_bubblewrap), "none"])
def sandbox(request: pytest.FixtureRequest, workspace: Workspace, station) -> Sandbox:
    return open_sandbox(request.param, workspace=workspace, hidden=[station.home], path=os.environ["PATH"])


@pytest.fixture
def bubble(workspace: Workspace, station) -> Sandbox:
    return open_sandbox("bubblewrap", workspace=workspace, hidden=[station.home], path=os.environ["PATH"])


async def out(sandbox: Sandbox, command: str) -> str:
    done = await sandbox.run(command, timeout_s=20, limit_bytes=20_000)
    return done.stdout.decode(errors="backslashreplace").strip()


def running(mark: str) -> list[int]:
    """Processes with `mark` on their command line."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if mark in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


# --- the contract ---


async def test_a_command_runs_in_the_workspace_with_both_streams_in_order(sandbox: Sandbox, workspace: Workspace) -> None:
    done = await sandbox.run("pwd; echo err >&2; echo out; exit 7", timeout_s=20, limit_bytes=1_000)
    assert (done.exit_code, done.stdout.decode()) == (7, f"{workspace.path}\nerr\nout\n")
    assert (done.stderr, done.timed_out, done.dropped_bytes) == (b"", False, 0)


async def test_files_are_written_for_good_and_belong_to_us(sandbox: Sandbox, workspace: Workspace) -> None:
    await out(sandbox, "mkdir new && echo x > new/file")
    assert (workspace.path / "new/file").read_text() == "x\n"
    assert (workspace.path / "new/file").stat().st_uid == os.getuid()


async def test_git_works_and_needs_no_identity(sandbox: Sandbox, workspace: Workspace) -> None:
    said = await out(sandbox, "echo x > f && git add f && git commit -q -m mine && git log --oneline | wc -l && git status --porcelain")
    assert said == "2"
    assert await out(sandbox, "git log -1 --format=%an") == "Stationmaster agent"


async def test_python3_of_the_path_works(sandbox: Sandbox) -> None:
    assert await out(sandbox, "python3 -c 'import json, ssl; print(1 + 1)'") == "2"


async def test_the_environment_holds_no_secret_and_no_way_back(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GIT_DIR", "SSH_AUTH_SOCK", "STATIONMASTER_HOME", "PYTHONPATH", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "s3cret")
    said = await out(sandbox, "env")
    assert "s3cret" not in said
    assert f"PATH={os.environ['PATH']}" in said
    assert f"HOME={os.environ['HOME']}\n" not in said


async def test_home_and_tmpdir_are_empty_and_writable(sandbox: Sandbox) -> None:
    said = await out(sandbox, "cd && find . -mindepth 1 | wc -l && touch $HOME/x $TMPDIR/y && mktemp > /dev/null && echo fine")
    assert said == "0\nfine"


@pytest.mark.parametrize(
    "command",
    [
        "git commit --allow-empty",
        "git commit -q --allow-empty -m x && git rebase -i HEAD~1",
        "for i in $(seq 60); do git commit -q --allow-empty -m $i; done; git log",
        "read x",
        "sudo -k true",
        "cat",
        "python3 -c 'input()'",
        "python3 -c 'open(\"/dev/tty\")'",
        "git ls-remote https://127.0.0.1:9/x.git",
        "ssh nohost.invalid",
        "man git",
        "crontab -e",
    ],
)
async def test_e7_what_would_ask_a_person_ends_in_seconds(sandbox: Sandbox, command: str) -> None:
    started = time.monotonic()
    done = await sandbox.run(command, timeout_s=15, limit_bytes=20_000)
    assert not done.timed_out, done.stdout
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "command", ["sleep {n} & echo done", "setsid sleep {n} & sleep 0.2; echo done", "(trap '' TERM HUP; sleep {n}) & echo done"]
)
async def test_e6_nothing_that_a_command_started_outlives_it(sandbox: Sandbox, command: str) -> None:
    mark = f"{100_000 + secrets.randbelow(800_000)}.25"
    started = time.monotonic()
    done = await sandbox.run(command.format(n=mark), timeout_s=20, limit_bytes=1_000)
    assert (done.exit_code, done.stdout) == (0, b"done\n")
    assert time.monotonic() - started < 2.5
    assert running(mark) == []


async def test_e6_a_command_ends_at_its_limit_with_everything_it_started(sandbox: Sandbox) -> None:
    mark = f"{100_000 + secrets.randbelow(800_000)}.5"
    done = await sandbox.run(f"trap '' TERM; setsid sleep {mark} & echo begun; sleep {mark}", timeout_s=0.7, limit_bytes=1_000)
    assert (done.exit_code, done.timed_out, done.stdout) == (None, True, b"begun\n")
    assert running(mark) == []


async def test_e6_cancelling_ends_everything_that_was_started(sandbox: Sandbox, workspace: Workspace) -> None:
    mark = f"{100_000 + secrets.randbelow(800_000)}.75"
    os.mkfifo(workspace.path / "begun")
    task = asyncio.create_task(sandbox.run(f"setsid sleep {mark} & echo x > begun; sleep {mark}", timeout_s=20, limit_bytes=1_000))
    await asyncio.to_thread((workspace.path / "begun").read_text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(mark) == []


async def test_e8_output_is_bounded(sandbox: Sandbox) -> None:
    done = await sandbox.run("seq 100000; echo the cause", timeout_s=20, limit_bytes=1_000)
    assert len(done.stdout) == 1_000
    assert done.stdout.startswith(b"1\n2\n")
    assert done.stdout.endswith(b"the cause\n")


async def test_a_sandbox_that_cannot_start_is_no_result_of_the_command(sandbox: Sandbox, workspace: Workspace) -> None:
    workspace.path.rename(workspace.path.with_name("gone"))
    with pytest.raises(SandboxUnavailable):
        await sandbox.run("echo fine", timeout_s=20, limit_bytes=1_000)


async def test_many_commands_run_at_once(sandbox: Sandbox) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(out(sandbox, f"echo {number}")) for number in range(16)]
    assert [task.result() for task in tasks] == [f"{number}" for number in range(16)]


# --- what bubblewrap hides ---


@needs_bubblewrap
async def test_only_the_workspace_can_be_written(bubble: Sandbox, workspace: Workspace, station) -> None:
    for place in ("/etc", "/usr", "/var", "/", f"{station.hub.objects}", f"{workspace.path.parent}"):
        await out(bubble, f"touch {place}/stationmaster-test")
        assert not (Path(place) / "stationmaster-test").exists()


@needs_bubblewrap
async def test_homes_and_the_stations_home_are_hidden(bubble: Sandbox, workspace: Workspace, station, own_home: Path) -> None:
    (own_home / "secret").write_text("s3cret")
    (station.home / "token").write_text("s3cret")
    assert "s3cret" not in await out(
        bubble, f"cat {own_home}/secret {station.home}/token; ls -laR /root /home /run {station.home.parent} | head -500"
    )
    listed = await out(bubble, f"find {station.home} -path {workspace.path} -prune -o -path {station.hub.objects} -prune -o -print")
    assert {Path(line) for line in listed.splitlines()} <= {*workspace.path.parents, *station.hub.objects.parents}


@needs_bubblewrap
async def test_the_hubs_objects_are_read_only_and_its_refs_out_of_sight(bubble: Sandbox, station) -> None:
    assert await out(bubble, f"ls {station.hub.path}") == "objects"
    assert "Read-only" in await out(bubble, f"touch {station.hub.objects}/x")


@pytest.fixture
def listening() -> Iterator[Path]:
    """A socket where sockets often are, and one where nobody looks."""
    folders = [Path(tempfile.mkdtemp(dir="/var/tmp")), Path(tempfile.mkdtemp(dir="/dev/shm"))]
    sockets = []
    for folder in folders:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(f"{folder}/s")
        sock.listen()
        sockets.append(sock)
    yield folders[0] / "s"
    for sock in sockets:
        sock.close()
    for folder in folders:
        shutil.rmtree(folder)


CONNECT = "python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(\"connected\")' "


@needs_bubblewrap
async def test_sockets_of_the_host_are_out_of_reach(bubble: Sandbox, listening: Path) -> None:
    assert "connected" not in await out(bubble, f"{CONNECT} {listening}")


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a socket in a folder that is not hidden")
async def test_sockets_outside_the_hidden_folders_are_covered(bubble: Sandbox) -> None:
    folder = Path(tempfile.mkdtemp(dir="/opt"))
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(f"{folder}/s")
            sock.listen()
            said = await out(bubble, f"ls {folder}; {CONNECT} {folder}/s")
            assert said.startswith("s\n")
            assert "connected" not in said
    finally:
        shutil.rmtree(folder)


@needs_bubblewrap
async def test_there_is_no_network_and_no_way_to_more_rights(bubble: Sandbox) -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        code = f'import socket; socket.create_connection(("127.0.0.1", {port}), 2); print("connected")'
        assert "connected" not in await out(bubble, f"python3 -c '{code}'")
    capabilities = await out(bubble, "grep Cap /proc/self/status")
    assert all(line.split()[1] == "0" * 16 for line in capabilities.splitlines())
    assert "CapEff" in capabilities
    assert (await bubble.run("umount /tmp || umount /run", timeout_s=10, limit_bytes=1_000)).exit_code != 0


@needs_bubblewrap
async def test_no_process_of_the_host_is_in_sight(bubble: Sandbox) -> None:
    assert f"\n{os.getpid()}\n" not in f"\n{await out(bubble, 'ls /proc')}\n" or os.getpid() < 20
    assert await out(bubble, "kill -0 $PPID; ls -l /proc/self/fd | grep -c memfd") in {"0", "1"}


@needs_bubblewrap
async def test_a_killed_station_takes_its_commands_with_it(workspace: Workspace, station) -> None:
    mark = f"{100_000 + secrets.randbelow(800_000)}.125"
    os.mkfifo(workspace.path / "begun")
    code = (
        "import asyncio, os, sys; from pathlib import Path; from workspaces.bubblewrap import BubblewrapSandbox\n"
        "box = BubblewrapSandbox(Path(sys.argv[1]), objects=Path(sys.argv[2]), hidden=[], path=os.environ['PATH'])\n"
        "asyncio.run(box.run(sys.argv[3], timeout_s=60, limit_bytes=1000))"
    )
    command = f"setsid sleep {mark} & echo x > begun; sleep {mark}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, f"{workspace.path}", f"{station.hub.objects}", command, cwd=Path(__file__).parents[2]
    )
    await asyncio.to_thread((workspace.path / "begun").read_text)
    assert running(mark)
    process.kill()
    await process.wait()
    gone = await asyncio.to_thread(psutil.wait_procs, [psutil.Process(pid) for pid in running(mark)], 5)
    assert gone[1] == []


@needs_bubblewrap
async def test_an_environment_in_a_hidden_home_works_and_its_neighbours_stay_hidden(workspace: Workspace, station, own_home: Path) -> None:
    made = await asyncio.create_subprocess_exec("python3", "-m", "venv", "--without-pip", f"{own_home / 'project/.venv'}")
    assert await made.wait() == 0
    (own_home / "project/.env").write_text("s3cret")
    path = f"{own_home / 'project/.venv/bin'}:{os.environ['PATH']}"
    box = open_sandbox("bubblewrap", workspace=workspace, hidden=[station.home], path=path)
    assert await out(box, "python3 -c 'import sys; print(sys.prefix)'") == f"{own_home / 'project/.venv'}"
    assert await out(box, f"ls -A {own_home / 'project'}") == ".venv"
    assert "Read-only" in await out(box, f"touch {own_home / 'project/.venv/x'}")


@needs_bubblewrap
async def test_the_users_checkout_is_hidden_wherever_it_lies_but_not_its_environment(workspace: Workspace, station) -> None:
    """Its ignored files and git directory are the user's, and it lies in no folder that is hidden anyway."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as name:
        checkout, linked = Path(name, "main"), Path(name, "linked")
        station.repo.git("clone", "-q", f"{workspace.hub.repo}", f"{checkout}", cwd=Path(name))
        station.repo.git("worktree", "add", "-q", f"{linked}", "-b", "other", cwd=checkout)
        (checkout / ".env").write_text("s3cret")
        made = await asyncio.create_subprocess_exec("python3", "-m", "venv", "--without-pip", f"{linked / '.venv'}")
        assert await made.wait() == 0
        box = BubblewrapSandbox(
            workspace.path,
            objects=workspace.hub.objects,
            hidden=[station.home],
            path=f"{linked / '.venv/bin'}:{os.environ['PATH']}",
            repository=linked,
        )
        assert await out(box, f"ls -A {linked}") == ".venv"
        assert await out(box, "python3 -c 'import sys; print(sys.prefix)'") == f"{linked / '.venv'}"
        assert "No such file" in await out(box, f"cat {checkout}/.git/config")
        whole = BubblewrapSandbox(
            workspace.path, objects=workspace.hub.objects, hidden=[station.home], path=os.environ["PATH"], repository=checkout
        )
        assert "No such file" in await out(whole, f"cat {checkout}/.env")


@needs_bubblewrap
async def test_snapshots_of_what_the_sandbox_made_work(bubble: Sandbox, workspace: Workspace, station) -> None:
    await out(bubble, "git init -q inner && echo i > inner/i && echo n > n && git add -A 2>/dev/null; git commit -q -m x")
    assert {"inner/i", "n"} <= station.names((await take_snapshot(workspace, message="m")).commit)


async def test_without_bubblewrap_the_problem_and_the_remedy_are_named(
    workspace: Workspace, station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    problem = await bubblewrap_problem()
    assert problem is not None
    assert "--sandbox none" in problem
    assert "\n" not in problem
    if sys.platform == "linux":
        box = BubblewrapSandbox(workspace.path, objects=station.hub.objects, hidden=[], path=f"{tmp_path}")
        with pytest.raises(SandboxUnavailable):
            await box.run("true", timeout_s=5, limit_bytes=100)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")
async def test_a_bubblewrap_that_fails_is_told_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    problem = await bubblewrap_problem()
    assert problem is not None
    assert "Permission denied" in problem
    box = BubblewrapSandbox(tmp_path, objects=tmp_path, hidden=[], path=os.environ["PATH"])
    with pytest.raises(SandboxUnavailable, match="Permission denied"):
        await box.run("true", timeout_s=5, limit_bytes=100)
