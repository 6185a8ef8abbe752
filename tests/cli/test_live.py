"""The whole command against a real station and a simulated engine with scripts of our own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from .conftest import COMMAND, Cli, environment, git

pytestmark = pytest.mark.slow

SCRIPT = """
task = "{id}"
[[step]]
thinking = "A small change."
[[step.call]]
tool = "write"
arguments = {{ path = "{id}.txt", content = "done\\n" }}
[[step]]
[[step.call]]
tool = "run"
arguments = {{ command = "cat {id}.txt" }}
[[step]]
[[step.call]]
tool = "submit"
arguments = {{ summary = "Wrote {id}.txt" }}
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[str]:
    """The URL of an engine that knows `one`, `two` and `three`."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("one", "two", "three"):
        (scripts / f"{name}.toml").write_text(SCRIPT.format(id=name))
    with simulated("--script", str(scripts)) as url:
        yield url


@contextlib.contextmanager
def simulated(*options: str) -> Iterator[str]:
    argv = [*COMMAND, "engine", "sim", "--port", "0", *options]
    process = subprocess.Popen(argv, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("ready "):
                yield f"{line.split()[1]}/v1"
                break
        else:
            pytest.fail("the engine did not come up")
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


@pytest.fixture
def station(cli: Cli) -> Iterator[Cli]:
    """The command; whatever station it started is stopped afterwards."""
    yield cli
    cli("down")


def tasks(*names: str, extra: str = "") -> str:
    one = '[[task]]\nid = "{0}"\ntitle = "Write {0}"\nprompt = "Write {0}.txt"\nchecks = ["grep -q done {0}.txt"]\n{1}\n'
    return "\n".join(one.format(name, extra) for name in names)


def run(cli: Cli, file: Path, repo: Path, engine: str, *more: str) -> subprocess.CompletedProcess[str]:
    return cli("run", file, "--repo", repo, "--endpoint", engine, "--agents", "2", "--wait", *more, timeout_s=120)


def test_from_a_task_file_to_a_merge(station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]) -> None:
    head = git(repo, "rev-parse", "HEAD")
    done = run(station, task_file(tasks("one", "two")), repo, engine, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["tasks"], result["verified"], result["failed"], result["diffs"]) == (2, 2, 0, 2)
    assert result["by_kind"] == {"coding": {"tasks": 2, "verified": 2, "failed": 0, "output_tokens": result["output_tokens"]}}
    assert result["unattributed_tokens"] == result["server_output_tokens"] - result["output_tokens"] == 0
    assert git(repo, "rev-parse", "HEAD") == head
    assert git(repo, "status", "--porcelain") == ""
    assert {row["id"] for row in station.json("review")} == {"one", "two"}

    shown = station("diff", "one").stdout
    assert "+++ b/one.txt" in shown
    assert "+done" in shown
    assert "\x1b" not in shown
    assert {row["id"]: row["state"] for row in station.json("list")}["one"] == "in-review"
    assert "no difference" in station("diff", "one", "--since-last-look").stdout
    assert station("diff", "two", "--stat").returncode == 0
    assert {row["id"]: row["state"] for row in station.json("list")}["two"] == "verified"
    assert station("approve", "one").returncode == 0
    merged = station("merge", "one")
    assert merged.returncode == 0, merged.stderr
    assert (repo / "one.txt").read_text() == "done\n"
    assert git(repo, "status", "--porcelain") == ""
    assert station("down").returncode == 0
    assert {row["id"]: row["state"] for row in station.json("list")}["one"] == "merged"
    assert station.json("diff", "two")["files"][0]["path"] == "two.txt"
    assert "submit" in station("log", "two").stdout
    assert "Write two" in station("show", "two").stdout
    assert station("events", "two").returncode == 0


def test_line_output_tells_what_happens_and_why_it_failed(station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]) -> None:
    done = run(station, task_file(tasks("one", "nobody-wrote-a-script")), repo, engine, "--plain")
    assert done.returncode == 1, done.stderr
    assert "write one.txt" in done.stdout
    assert "1 of 2 tasks verified, 1 failed" in done.stdout
    assert "nobody-wrote-a-script: " in done.stdout


def test_a_task_behind_one_that_failed_does_not_hold_up_the_end(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    text = tasks("nobody-wrote-a-script") + tasks("two", extra='after = ["nobody-wrote-a-script"]')
    done = run(station, task_file(text), repo, engine, "--json")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert (result["verified"], result["failed"]) == (0, 2)
    assert result["not_run"] == {"two": "nobody-wrote-a-script"}


def test_an_id_that_is_there_already_queues_nothing(station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    again = run(station, task_file(tasks("one", "two")), repo, engine)
    assert again.returncode == 2
    assert "`one`" in again.stderr
    assert [row["id"] for row in station.json("list")] == ["one"]


def test_a_station_with_another_endpoint_is_not_taken_for_this_one(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    done = run(station, task_file(tasks("one")), repo, "http://127.0.0.1:9/v1")
    assert done.returncode == 2
    assert "another endpoint" in done.stderr
    assert station.json("list") == []


def test_a_simulated_engine_is_called_so_wherever_it_runs(station: Cli, engine: str) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    told = station.json("status")["engine"]
    assert (told["healthy"], told["simulated"], told["child"]) == (True, True, False)
    assert "simulated engine" in station("status").stdout
    refused = station("up", "--engine", "sim")
    assert refused.returncode == 2
    assert "another endpoint" in refused.stderr


def test_a_running_station_refuses_another_model_or_key(station: Cli, engine: str) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    model = station.json("status")["engine"]["model"]
    assert station("up", "--model", model).returncode == 0
    other = station("up", "--model", "another")
    assert (other.returncode, "another model" in other.stderr) == (2, True)
    key = station("up", "--api-key-env", "KEY_HERE", KEY_HERE="secret")
    assert (key.returncode, "runs with no key" in key.stderr) == (2, True)


def test_up_says_when_the_engine_cannot_be_used_yet(station: Cli, engine: str) -> None:
    done = station("up", "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 0
    assert "the engine does not answer (connection refused at http://127.0.0.1:9); tasks wait" in done.stderr
    assert station("down").returncode == 0
    unknown = station("up", "--endpoint", engine, "--model", "nomodel")
    assert unknown.returncode == 0
    assert "not nomodel" in unknown.stderr
    assert station.json("status")["engine"]["healthy"] is False


def test_up_and_down_may_be_said_twice(station: Cli, engine: str) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    first = station.json("status")
    assert first["running"]
    assert station("up").returncode == 0
    assert station.json("status")["pid"] == first["pid"]
    assert station("down").returncode == 0
    assert station("down").returncode == 0
    assert station.json("status")["running"] is False


def test_an_ordinary_stop_leaves_no_socket_that_doctor_would_wonder_at(station: Cli, engine: str) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    assert station("down").returncode == 0
    (found,) = [finding for finding in station.json("doctor") if finding["check"] == "station"]
    assert found["found"] == "none runs"
    assert not (station.home / "station.sock").exists()


def test_doctor_asks_an_endpoint_as_the_station_would(cli: Cli, engine: str) -> None:
    def endpoint(url: str, exits: int) -> str:
        return next(it["found"] for it in cli.json("doctor", "--endpoint", url, exits=exits) if it["check"] == "endpoint")

    assert " serves " in endpoint(engine.removesuffix("/v1"), 0)
    assert "is no endpoint" in endpoint("http://localhost:abc/v1", 1)
    assert "does not answer" in endpoint("http://127.0.0.1:9/v1", 1)
    assert "refuses us" in endpoint(f"{engine}/nowhere", 1)


def test_events_end_at_the_newest_one_while_agents_are_at_work(
    station: Cli, repo: Path, task_file: Callable[[str], Path], tmp_path: Path
) -> None:
    profile, scripts = tmp_path / "slow.toml", tmp_path / "scripts"
    profile.write_text('name = "slow"\ndecode_step_ms = [[1, 20.0]]\nprefill_tokens_per_s = 2000000.0\n')
    scripts.mkdir()
    (scripts / "one.toml").write_text('task = "one"\n' + '[[step]]\nfiller_tokens = 20000\ntext = "long"\n')
    with simulated("--profile", str(profile), "--script", str(scripts)) as url:
        queued = station("run", task_file(tasks("one")), "--repo", repo, "--endpoint", url, "--plain")
        assert queued.returncode == 0, queued.stderr
        follow_until(station, lambda states: states.get("one") == "running")
        done = station("events", timeout_s=20)
        assert done.returncode == 0, done.stderr
        assert "preparing → running" in done.stdout
        assert [row["state"] for row in station.json("list")] == ["running"]
        told = station.json("events", "one")
        assert {event["task"] for event in told} == {"one"}
        assert station("down").returncode == 0


def test_a_task_file_may_come_after_a_task_that_is_queued_already(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    done = run(station, task_file(tasks("two", extra='after = ["one"]')), repo, engine, "--json")
    assert done.returncode == 0, done.stderr
    refused = station("add", task_file(tasks("three", extra='after = ["onne"]')), "--repo", repo)
    assert refused.returncode == 2
    assert "did you mean `one`?" in refused.stderr


def test_one_task_needs_no_title(station: Cli, engine: str, repo: Path) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    assert station.json("add", "--prompt", "Round half to even\nand say so", "--repo", repo) == {"added": ["round-half-to-even"]}
    (row,) = station.json("list")
    assert row["title"] == "Round half to even"


def test_work_goes_on_after_the_station_was_killed(station: Cli, repo: Path, task_file: Callable[[str], Path], engine: str) -> None:
    queued = station("run", task_file(tasks("one", "two", "three")), "--repo", repo, "--endpoint", engine, "--agents", "1", "--plain")
    assert queued.returncode == 0, queued.stderr
    os.kill(station.json("status")["pid"], signal.SIGKILL)
    assert station.json("status")["running"] is False
    assert station("up").returncode == 0
    more = station("add", "--title", "Another one", "--prompt", "x", "--repo", repo, "--json")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout) == {"added": ["another-one"]}
    follow_until(station, lambda states: all(states.get(name) == "verified" for name in ("one", "two", "three")))
    assert {row["attempt"] for row in station.json("list") if row["id"] != "another-one"} == {1}


def follow_until(cli: Cli, enough: Callable[[dict[str, str]], bool], *, after: int = 0) -> None:
    """Until the states by task, as `events --follow` tells them, are enough."""
    argv = [*COMMAND, "events", "--follow", "--after", str(after), "--home", str(cli.home)]
    follow = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, text=True)
    assert follow.stdout is not None
    states: dict[str, str] = {}
    try:
        for line in follow.stdout:
            _, task, _, *rest = [*line.split(" ", 3), ""]
            if " → " in rest[0]:
                states[task] = rest[0].split(" → ")[1].split(":")[0].strip()
            if enough(states):
                break
    finally:
        follow.kill()
        follow.wait()
        follow.stdout.close()


def test_a_reader_that_leaves_ends_the_lines_and_not_the_work(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    argv = [
        *COMMAND,
        "run",
        str(task_file(tasks("one"))),
        "--repo",
        str(repo),
        "--endpoint",
        engine,
        "--wait",
        "--plain",
        "--home",
        str(station.home),
    ]
    shell = f"{' '.join(argv)} | head -n 1"
    done = subprocess.run(["sh", "-c", shell], env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert station.json("status")["running"]


def test_a_demo_that_is_ended_early_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--plain", "--tasks", "4"],
        env=environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline(), process.communicate(timeout=30)[1]
    (place,) = tmp_path.glob("stationmaster-demo-*")
    pid = json.loads(
        subprocess.run(
            [*COMMAND, "status", "--json", "--home", str(place / "home")], env=environment(), capture_output=True, check=True
        ).stdout
    )["pid"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.glob("stationmaster-demo-*")) == []
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(10)  # it has let go of its home, and is about to end


def test_a_small_demo_goes_as_designed_and_can_be_looked_at_afterwards(cli: Cli, tmp_path: Path) -> None:
    done = cli("demo", "--plain", "--json", "--tasks", "6", "--keep", tmp_path / "kept", timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert f"{cli.home} is not used" in done.stderr
    result = json.loads(done.stdout)
    assert result["tasks"] == 6
    assert set(result["by_kind"]) == {"coding", "document", "accounting"}
    kept = Cli(home=Path(result["home"]), folder=cli.folder)
    assert kept.json("status")["running"] is False
    assert len(kept.json("review")) == result["verified"]
    assert not cli.home.exists()


def test_the_demos_next_lines_can_be_pasted_wherever_it_is_kept(cli: Cli, tmp_path: Path) -> None:
    done = cli("demo", "--plain", "--tasks", "1", "--agents", "1", "--keep", tmp_path / "keep it ü", home=False, timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert "\n1 agent was at work at once" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("    stationmaster ")]
    assert lines
    assert {shlex.split(line)[-1] for line in lines} == {str(tmp_path / "keep it ü" / "home")}


def test_a_station_that_is_killed_ends_the_wait_with_a_word(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    file = task_file(tasks("nobody-wrote-a-script", "nor-for-this"))
    argv = [*COMMAND, "run", str(file), "--repo", str(repo), "--endpoint", engine, "--agents", "1", "--wait", "--plain"]
    waiting = subprocess.Popen(
        [*argv, "--home", str(station.home)], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline()
    os.kill(station.json("status")["pid"], signal.SIGKILL)
    _, said = waiting.communicate(timeout=30)
    assert waiting.returncode == 1
    assert said.startswith("error: the station stopped before all tasks had ended")
    assert f"stationmaster up --home {station.home}" in said


def test_a_task_or_an_attempt_that_is_not_there_is_refused(station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    for still_up in (True, False):
        for args, words in ((("events", "nope"), "there is no task nope"), (("log", "one", "--attempt", "9"), "has no attempt 9")):
            done = station(*args)
            assert done.returncode == 2, done.stdout
            assert words in done.stderr
        if still_up:
            assert station("down").returncode == 0


def test_a_submission_is_not_called_right_before_the_checks_have_run(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    told = station("events", "one").stdout
    assert "✓ write one.txt" in told
    assert "submit Wrote one.txt" in told
    assert "✓ submit" not in told


@pytest.mark.parametrize("of", [(), ("one",)])
def test_following_ends_with_the_station(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path], of: tuple[str, ...]
) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    argv = [*COMMAND, "events", *of, "--follow", "--home", str(station.home)]
    follow = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert follow.stdout is not None
    assert follow.stdout.readline()
    assert station("down").returncode == 0
    told, said = follow.communicate(timeout=30)
    assert (follow.returncode, said) == (0, "")
    assert of or told.splitlines()[-1].endswith("station stopped")


def test_a_station_that_is_stopped_like_a_job_is_not_called_down_and_is_waited_for(
    station: Cli, repo: Path, task_file: Callable[[str], Path], engine: str
) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    pid = station.json("status")["pid"]
    argv = [*COMMAND, "run", str(task_file(tasks("one"))), "--repo", str(repo), "--wait", "--plain", "--home", str(station.home)]
    waiting = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    assert waiting.stderr is not None
    assert waiting.stdout.readline()
    os.kill(pid, signal.SIGSTOP)
    try:
        told = station("status")
        assert told.stdout.startswith(f"not answering  pid {pid}")
        assert f"(pid {pid}) of {station.home} does not answer" in told.stderr
        assert f"(pid {pid})" in station("up").stderr
        assert "does not answer" in waiting.stderr.readline()
    finally:
        os.kill(pid, signal.SIGCONT)
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, out


def test_a_token_that_was_emptied_is_named_and_the_next_start_makes_another(station: Cli, engine: str) -> None:
    assert station("up", "--endpoint", engine).returncode == 0
    pid = station.json("status")["pid"]
    (station.home / "token").write_text("")
    assert f"(pid {pid}) cannot be asked: {station.home}/token is empty" in station("status").stderr
    os.kill(pid, signal.SIGTERM)
    psutil.Process(pid).wait(20)
    assert station("up").returncode == 0


def test_a_conflict_is_mended_by_a_retry_that_begins_at_the_branch_as_it_is_now(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]
) -> None:
    base = git(repo, "rev-parse", "HEAD")
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    (repo / "one.txt").write_text("somebody else was here first\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "meanwhile")
    moved = git(repo, "rev-parse", "HEAD")
    assert station("approve", "one").returncode == 0
    refused = station("merge", "one")
    assert refused.returncode == 1
    assert "conflict in one.txt" in refused.stderr

    listed = station("review").stdout
    assert "nothing waits for review" in listed
    assert "stationmaster retry one" in listed
    assert station.json("review") == []
    again = station("approve", "one")
    assert (again.returncode, "retry one" in again.stderr) == (2, True)
    assert "coding, conflicted for " in station("show", "one").stdout

    before = station.json("events")[-1]["seq"]
    assert station("retry", "one").returncode == 0
    follow_until(station, lambda states: states.get("one") == "verified", after=before)
    (row,) = station.json("list")
    assert (row["attempt"], row["base_commit"]) == (2, moved)
    assert moved != base
    assert station("approve", "one").returncode == 0
    assert station("merge", "one").returncode == 0
    assert (repo / "one.txt").read_text() == "done\n"
    assert git(repo, "rev-parse", "HEAD^") == moved


def test_changes_that_are_not_committed_are_mentioned(station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path]) -> None:
    (repo / "untracked.txt").touch()
    done = run(station, task_file(tasks("one")), repo, engine)
    assert (done.returncode, done.stderr) == (0, "")
    (repo / "a.txt").write_text("changed\n")
    done = station("add", "--prompt", "x", "--repo", repo)
    assert f"{repo} has uncommitted changes; agents work from the commit {git(repo, 'rev-parse', 'HEAD')[:12]}" in done.stderr


@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGKILL])
def test_a_home_on_a_file_system_that_cannot_be_written_can_be_read(
    station: Cli, engine: str, repo: Path, task_file: Callable[[str], Path], ended: signal.Signals
) -> None:
    assert run(station, task_file(tasks("one")), repo, engine).returncode == 0
    pid = station.json("status")["pid"]
    os.kill(pid, ended)
    psutil.Process(pid).wait(20)
    (station.home / "station.db-shm").unlink(missing_ok=True)
    for args in (("list", "--json"), ("diff", "one"), ("log", "one")):
        argv = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", station.home, station.home, *COMMAND, *args, "--home", station.home]
        done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60, check=False)
        if "bwrap" in done.stderr:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
