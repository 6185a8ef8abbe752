"""What goes wrong ends in one error, a hint and the right exit status, never in a traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import COMMAND, Cli, environment

READS = (
    ("list",),
    ("show", "x"),
    ("diff", "x"),
    ("events",),
    ("log", "x"),
    ("review",),
    ("workspace", "list"),
    ("approve", "x"),
    ("merge",),
    ("say", "x", "y"),
)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "\n\nhint: " in done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("args", READS)
def test_a_home_that_is_not_there_is_named(cli: Cli, args: tuple[str, ...]) -> None:
    refused(cli(*args), "there is no station's home at", str(cli.home))
    assert not cli.home.exists()


def test_an_unknown_command_gets_its_nearest_neighbour(cli: Cli) -> None:
    refused(cli("lst"), "did you mean `list`?")


@pytest.mark.parametrize("args", [("list", "--bogus"), ("show",), ("list", "--state", "sleeping"), ("bench",), ("engine", "sim")])
def test_clicks_own_usage_errors_look_like_ours(cli: Cli, args: tuple[str, ...]) -> None:
    refused(cli(*args), "--help` shows the usage")


@pytest.mark.parametrize(
    "text",
    [
        '[[task]]\nid="x"\ntitel="y"\n',
        '[[task]]\nid="a"\nprompt="p"\nafter=["b"]\n[[task]]\nid="b"\nprompt="p"\nafter=["a"]\n',
        "[[task]\n",
        "",
    ],
    ids=["unknown key", "cycle", "broken", "empty"],
)
def test_a_bad_task_file_queues_nothing_and_starts_nothing(cli: Cli, repo: Path, task_file: Callable[[str], Path], text: str) -> None:
    refused(cli("run", task_file(text), "--repo", repo, "--engine", "sim", "--plain", "--wait"))
    assert not cli.home.exists()


def test_a_task_file_that_is_not_there_is_named(cli: Cli, repo: Path) -> None:
    refused(cli("run", "nowhere.toml", "--repo", repo, "--engine", "sim"), "nowhere.toml")


def test_a_folder_without_git_is_named(cli: Cli, tmp_path: Path, task_file: Callable[[str], Path]) -> None:
    refused(cli("run", task_file('[[task]]\nid="x"\nprompt="y"\n'), "--repo", tmp_path, "--engine", "sim"), str(tmp_path))
    assert not cli.home.exists()


def test_run_without_any_engine_says_what_to_name(cli: Cli, repo: Path, task_file: Callable[[str], Path]) -> None:
    refused(cli("run", task_file('[[task]]\nid="x"\nprompt="y"\n'), "--repo", repo, "--plain"), "--endpoint")
    assert not cli.home.exists()


@pytest.mark.parametrize("url", ["localhost:8000", "http://localhost:abc/v1", "http://[::1/v1", "http://u:p@h/v1"])
def test_an_endpoint_that_is_no_url_is_refused(cli: Cli, repo: Path, task_file: Callable[[str], Path], url: str) -> None:
    refused(cli("run", task_file('[[task]]\nid="x"\nprompt="y"\n'), "--repo", repo, "--endpoint", url), url, "is no endpoint")
    refused(cli("bench", "--endpoint", url), url, "is no endpoint")
    assert not cli.home.exists()


def test_a_variable_without_a_key_is_refused_before_anything_starts(cli: Cli) -> None:
    refused(cli("up", "--endpoint", "http://127.0.0.1:9/v1", "--api-key-env", "NOT_SET_HERE"), "NOT_SET_HERE")
    assert not cli.home.exists()


def test_a_variable_whose_content_no_request_can_carry_is_refused(cli: Cli) -> None:
    done = cli("up", "--endpoint", "http://127.0.0.1:9/v1", "--api-key-env", "KEY_HERE", KEY_HERE="schlüssel")
    refused(done, "KEY_HERE")
    assert "schl" not in done.stderr


def test_the_dashboard_without_a_terminal_says_what_works_instead(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "station.db").touch()
    refused(cli("tui"), "needs a terminal")


def test_a_reader_that_goes_away_is_no_traceback(cli: Cli) -> None:
    shell = " ".join([*COMMAND, "--help", "|", "true"])
    done = subprocess.run(["sh", "-c", shell], cwd=cli.folder, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


def test_a_locale_without_utf8_gets_escapes(cli: Cli) -> None:
    done = cli("list", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_down_and_status_of_a_home_that_never_was_are_no_errors(cli: Cli) -> None:
    assert cli("down").returncode == 0
    document = cli.json("status")
    assert document["running"] is False
    assert document["pid"] is None
    assert not cli.home.exists()


def test_a_damaged_database_is_named(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "station.db").write_bytes(b"this was never a database, whatever its name says" * 100)
    refused(cli("list"), "station.db")
