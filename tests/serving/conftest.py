"""A simulated engine in a process of its own, on a free port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

StartEngine = Callable[..., str]


@pytest.fixture
def start_engine() -> Iterator[StartEngine]:
    """Starts `python -m orchestrator.serving.simulator` with these arguments and gives its URL; every engine is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> str:
        argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--port", "0", *arguments]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("ready http://127.0.0.1:"), line + process.stderr.read()
        return line.split()[1]

    yield start
    for process in started:
        process.terminate()
    for process in started:
        process.communicate(timeout=10)


@pytest.fixture
def fast_profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An engine of 1 ms a step, so that tests wait for little."""
    path = tmp_path_factory.mktemp("profile") / "fast.toml"
    path.write_text('name = "fast"\ndecode_step_ms = [[1, 1.0]]\nmax_model_len = 4096\nnum_gpu_blocks = 4096\n')
    return str(path)
