"""Field cases T3 and T5, and failure mode 25: many rows, small screens, no colours, no UTF-8, signals."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil
import pytest
from textual.widgets._footer import FooterKey

from tests.orchestrator.station.conftest import Yard
from tests.tui.conftest import busy_station, row
from tests.tui.test_journeys import dashboard, press, screen_text, until
from tui.app import Dashboard
from tui.fake import FakeStation, FakeTask
from tui.screens.fleet import FleetScreen
from tui.widgets.fleet import FleetList
from tui.widgets.hints import KeyHints

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|38;|48;|9[0-7]|10[0-7])[0-9;]*m")


async def test_t5_too_small_says_so_and_comes_back():
    async with dashboard(busy_station(), size=(80, 24)) as (app, pilot):
        for size in ((1, 1), (20, 5), (59, 24), (80, 11)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.screen.has_class("-too-small") and "too small"[: size[0]] in screen_text(app))
        await press(pilot, "j", "enter", "q")
        for size in ((300, 80), (60, 12), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "money-rounding" in screen_text(app))
        assert not app.screen.has_class("-too-small")


async def test_t5_key_hints_are_whole_or_not_there_at_any_width():
    async with dashboard(busy_station(), size=(60, 12)) as (app, pilot):
        for keys in ((), ("enter",), ("v",)):
            await press(pilot, *keys)
            for width in (60, 80, 120):
                await pilot.resize_terminal(width, 24)
                left_out = app.screen.query_one(KeyHints).left_out
                hints = [f"{hint.key_display} {hint.description}" for hint in app.screen.query(FooterKey) if hint.action not in left_out]
                fitting = max(" ".join(hints[:count]) for count in range(len(hints) + 1) if len(" ".join(hints[:count])) <= width)
                assert screen_text(app).splitlines()[-1].rstrip() == fitting
                assert "? Help" in fitting


async def test_t5_without_utf8_every_cell_is_ascii():
    app = Dashboard(busy_station(), poll_s=0.1, ascii_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.tasks.ids)
        for keys in ((), ("enter",), ("v",), ("x",)):
            await press(pilot, *keys)
            await pilot.pause()
            assert screen_text(app).isascii()
        await press(pilot, "escape", "q", "q")
        assert "simulated/nemotron-3-nano-30b" in screen_text(app)
        assert "SIMULATED" in screen_text(app)
        assert "> model" in screen_text(app)


async def test_t3_a_snapshot_that_changes_one_row_paints_one_row():
    station = FakeStation(agents=256)
    for i in range(256):
        station.put(FakeTask(row=row(f"task-{i:03}", "running", activity="model", state_age_s=4_000.0)))
    async with dashboard(station, size=(120, 40)) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await pilot.pause()
        now = app.now()
        assert fleet.show(app.model, app.screen.selection, now) == 0
        station.change("task-005", output_tokens=99_000)
        station.change("task-200", output_tokens=99_000)
        await until(pilot, lambda: app.model.row("task-200").output_tokens == 99_000)
        changed = app.model
        await pilot.pause()
        known = app.model.tasks["task-005"]
        lighter = {**changed.tasks, "task-005": type(known)(row=row("task-005", "running", step=9), at=known.at, place=known.place)}
        model = type(changed)(**{**{name: getattr(changed, name) for name in changed.__slots__}, "tasks": lighter})
        assert fleet.show(model, app.screen.selection, now) == 1


CHILD = """
import sys
sys.path.insert(0, {root!r})
from tests.tui.conftest import busy_station
from tui.app import Dashboard
Dashboard(busy_station()).run()
"""


class Terminal:
    """A program on a pseudo-terminal of 100x30."""

    def __init__(self, argv, **environ):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = termios.tcgetattr(slave)
        known = {
            name: value
            for name, value in os.environ.items()
            if name not in {"NO_COLOR", "LC_ALL", "LANG", "LC_CTYPE", "COLORTERM", "COLUMNS", "LINES"}
        }
        known |= {"TERM": "xterm-256color", **environ}
        self.child = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=known, cwd=ROOT, start_new_session=True)
        self.slave = slave
        self.seen = b""

    def read_until(self, wanted, limit_s=15.0):
        end = time.monotonic() + limit_s
        while wanted not in self.seen:
            assert time.monotonic() < end, self.seen[-2_000:]
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65_536)

    def wait(self):
        """The exit status; what is still written is read on, so that nobody waits for us."""
        end = time.monotonic() + 15.0
        while self.child.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65_536)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65_536)
        return self.child.wait(1)

    def settings_now(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    opened = []

    def open_terminal(*argv, **environ):
        opened.append(Terminal(argv, **environ))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_t5_term_and_hup_give_the_terminal_back(terminal, number):
    screen = terminal(sys.executable, "-c", CHILD.format(root=str(ROOT)))
    screen.read_until(b"money-rounding")
    assert screen.settings_now() != screen.before
    screen.child.send_signal(number)
    assert screen.wait() == 0
    assert b"\x1b[?1049l" in screen.seen
    assert b"\x1b[?25h" in screen.seen.rsplit(b"\x1b[?1049h", 1)[1]
    assert screen.settings_now() == screen.before


def test_t5_a_dashboard_that_is_killed_leaves_a_terminal_that_works(terminal, tmp_path):
    yard = Yard(tmp_path)
    try:
        yard.up(endpoint="http://127.0.0.1:9/v1")
        screen = terminal(sys.executable, "-m", "orchestrator.cli", "tui", "--home", str(yard.home.path))
        screen.read_until(b"no tasks yet")
        assert screen.settings_now() != screen.before
        (dashboard,) = psutil.Process(screen.child.pid).children()
        dashboard.kill()
        assert screen.wait() == 1
    finally:
        yard.close()
    after = screen.seen.rsplit(b"no tasks yet", 1)[1]
    for given_back in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l"):
        assert given_back in after
    assert b"error: the dashboard was ended by SIGKILL" in after
    assert b"the agents go on" in after
    assert screen.settings_now() == screen.before


def test_t5_mouse_bytes_that_are_no_utf8_do_no_harm(terminal):
    screen = terminal(sys.executable, "-c", CHILD.format(root=str(ROOT)))
    screen.read_until(b"money-rounding")
    os.write(screen.master, b"\x1b[M\xff\xff\xff\x1b[M \xc8\xc8")
    os.write(screen.master, b"q")
    assert screen.wait() == 0


def test_no_color_sends_no_colour(terminal):
    screen = terminal(sys.executable, "-c", CHILD.format(root=str(ROOT)), NO_COLOR="1")
    screen.read_until(b"money-rounding")
    os.write(screen.master, b"q")
    assert screen.wait() == 0
    assert COLOUR.search(screen.seen.decode()) is None


def test_a_latin_1_terminal_gets_ascii(terminal):
    screen = terminal(sys.executable, "-c", CHILD.format(root=str(ROOT)), LANG="de_DE.ISO-8859-1", PYTHONIOENCODING="latin-1")
    screen.read_until(b"money-rounding")
    os.write(screen.master, b"q")
    assert screen.wait() == 0
    assert screen.seen.isascii()


def test_no_station_is_one_clear_line_and_exit_1(terminal, tmp_path):
    screen = terminal(sys.executable, "-m", "tui", "--home", str(tmp_path / "none"))
    assert screen.wait() == 1
    shown = screen.seen.decode()
    assert shown.startswith(f"error: no station is running for {tmp_path / 'none'}")
    assert "hint: start it with `stationmaster up" in shown
    assert "\x1b" not in shown


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tui", "--home", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the dashboard needs a terminal")
    assert done.stdout == ""
