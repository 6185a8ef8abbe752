"""The dashboard of a real station in a real terminal: a small demo is watched, approved and merged by keys alone."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """One detached session of 110x34 on a server of its own."""

    def __init__(self, folder, argv):
        self.socket = str(folder / "tmux.sock")
        self.call("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "34", *argv)
        self.call("set-option", "-g", "remain-on-exit", "on")

    def call(self, *arguments):
        # These two would be taken for the size of the terminal.
        known = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *arguments], capture_output=True, text=True, cwd=ROOT, check=True, env=known
        )
        return done.stdout

    def keys(self, *keys):
        self.call("send-keys", *keys)

    def shows(self, *texts):
        end = time.monotonic() + LIMIT_S
        while True:
            seen = self.call("capture-pane", "-p")
            if all(text in seen for text in texts):
                return seen
            assert time.monotonic() < end, seen
            # Nothing tells from outside when another terminal has changed: look again.
            time.sleep(0.1)


@pytest.fixture
def demo(tmp_path):
    place = tmp_path / "demo"
    argv = [sys.executable, "-m", "orchestrator.cli", "demo", "--tasks", "2", "--agents", "2", "--keep", str(place)]
    tmux = Tmux(tmp_path, argv)
    yield tmux, place
    subprocess.run(["tmux", "-S", tmux.socket, "kill-server"], check=False, capture_output=True)
    if (place / "home").exists():
        subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", "down", "--home", str(place / "home")], cwd=ROOT, check=False, capture_output=True
        )


@pytest.mark.slow
def test_a_demo_is_watched_reviewed_and_merged_by_keys_alone(demo):
    tmux, place = demo
    tmux.shows("SIMULATED ENGINE", "money-rounding", "tok/s")
    tmux.shows("3 to review 2")
    tmux.keys("g", "Enter")
    tmux.shows("attempt 1", "trajectory")
    tmux.keys("v")
    tmux.shows("1 of 2 to review", "→ main", "@@")
    tmux.keys("a")
    tmux.shows("approved; m merges it")
    tmux.keys("m")
    tmux.shows("merged into main as")
    tmux.keys("q", "q")
    tmux.shows("3 to review 1", "5 done 1")
    tmux.keys("q")
    tmux.shows("stationmaster diff")
    subjects = subprocess.run(["git", "-C", str(place / "repo"), "log", "--format=%s"], capture_output=True, text=True, check=True).stdout
    assert len(subjects.splitlines()) >= 2
