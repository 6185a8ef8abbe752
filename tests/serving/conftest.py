"""A simulated engine in a process of its own, on a free port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

StartEngine = Callable[..., str]


@contextmanager
def engines() -> Iterator[StartEngine]:
    """Starts `python -m orchestrator.serving.simulator` with these arguments and gives its URL; all are ended at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> str:
        argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--port", "0", *arguments]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("ready http://127.0.0.1:"), line + process.stderr.read()
        return line.split()[1]

    try:
        yield start
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.communicate(timeout=10)


@pytest.fixture
def start_engine() -> Iterator[StartEngine]:
    with engines() as start:
        yield start


@pytest.fixture(scope="session")
def engine_url(fast_profile: str) -> Iterator[str]:
    """One engine for all tests that neither read its counters nor need it otherwise."""
    with engines() as start:
        yield start("--profile", fast_profile)


@pytest.fixture(scope="session")
def fast_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An engine of 1 ms a step, so that tests wait for little."""
    path = tmp_path_factory.mktemp("profile") / "fast.toml"
    path.write_text('name = "fast"\ndecode_step_ms = [[1, 1.0]]\nmax_model_len = 4096\nnum_gpu_blocks = 4096\n')
    return str(path)
