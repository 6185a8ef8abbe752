"""`bench`: it ends when it is told to, and a dead endpoint costs one request."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

from .conftest import COMMAND, Cli, environment
from .test_live import simulated

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_it_at_once_and_without_a_traceback(tmp_path: Path, number: signal.Signals) -> None:
    profile = tmp_path / "slow.toml"
    profile.write_text('name = "slow"\ndecode_step_ms = [[1, 50.0]]\nprefill_tokens_per_s = 2000000.0\n')
    with simulated("--profile", str(profile)) as url:
        argv = [*COMMAND, "bench", "--endpoint", url, "--concurrency", "16", "--requests", "64", "--output-tokens", "1000"]
        bench = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while generated(url) < 16 * 32 + 17:  # the warm-up is over
            assert bench.poll() is None
        bench.send_signal(number)
        out, err = bench.communicate(timeout=3)
        assert (bench.returncode, out, err.strip()) == (130, "", "")


def generated(url: str) -> float:
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("vllm:generation_tokens_total"))


def test_a_port_where_nobody_listens_is_one_error_and_no_table_of_dashes(cli: Cli) -> None:
    for more in ((), ("--model", "m")):
        done = cli("bench", "--endpoint", "http://127.0.0.1:9", *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: no request succeeded at http://127.0.0.1:9/v1: unreachable (3072)")


def test_a_server_that_goes_away_is_not_asked_a_thousand_times(cli: Cli) -> None:
    """It answers one request and closes its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answering = threading.Thread(target=refuse_once, args=(server,))
        answering.start()
        done = cli("bench", "--endpoint", f"http://127.0.0.1:{port}", "--model", "m", "--concurrency", "2", "--requests", "5000", "--json")
        answering.join()
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"] == {"unreachable": 15000}


def refuse_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    server.close()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 503 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    connection.close()
