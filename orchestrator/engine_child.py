"""The simulated engine as the station's child: started, watched, started again when it dies, and never left behind.

It holds the reading end of a pipe from the station and ends with it, so that even a killed station leaves no engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from orchestrator.clock import Clock
from orchestrator.config import Settings

log = logging.getLogger(__name__)

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
STEADY_S = 30.0
TERM_S = 3.0


class EngineChild:
    """`ready` is called with the engine's root URL each time it listens, `lost` with the reason each time it has ended."""

    def __init__(self, settings: Settings, *, clock: Clock, ready: Callable[[str], None], lost: Callable[[str], None]) -> None:
        self._settings = settings
        self._clock = clock
        self._ready = ready
        self._lost = lost
        self._port = 0
        self.pid: int | None = None

    async def run(self) -> None:
        """Until cancelled; the child is dead when this returns."""
        wait_s = FIRST_WAIT_S
        while True:
            started = self._clock.monotonic()
            reason = await self._once()
            lived_s = self._clock.monotonic() - started
            wait_s = FIRST_WAIT_S if lived_s > STEADY_S else min(2 * wait_s, LONGEST_WAIT_S)
            log.warning("the simulated engine ended after %.1f s (%s); it is started again in %.1f s", lived_s, reason, wait_s)
            self._lost(reason)
            await self._clock.sleep(wait_s)

    async def _once(self) -> str:
        child = await asyncio.create_subprocess_exec(
            *self._argv(),
            cwd=Path(__file__).parent.parent,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = child.pid
        try:
            last = await self._listen(child)
            code = await child.wait()
            if last.startswith("error") and self._port:
                self._port = 0  # somebody else took the port meanwhile
            return f"exit {code}" + (f": {last}" if last else "")
        finally:
            self.pid = None
            await _end(child)

    def _argv(self) -> list[str]:
        # A restarted engine comes back on its former port where it can: whoever else looks at its metrics finds it again.
        argv = [
            sys.executable,
            "-m",
            "orchestrator.serving.simulator",
            "--port",
            str(self._port),
            "--parent-pipe",
            "--seed",
            str(self._settings.sim_seed),
        ]
        if self._settings.sim_profile:
            argv += ["--profile", self._settings.sim_profile]
        if self._settings.sim_script:
            argv += ["--script", self._settings.sim_script]
        return argv

    async def _listen(self, child: asyncio.subprocess.Process) -> str:
        """Follow what it prints until it closes its end; its error, else the last line that says something."""
        assert child.stderr is not None
        last = ""
        async for raw in child.stderr:
            line = raw.decode(errors="replace").strip()
            if line.startswith("ready "):
                url = line.removeprefix("ready ").strip()
                self._port = int(url.rpartition(":")[2])
                self._ready(url)
            elif line:
                last = last if last.startswith("error:") else line
                log.info("engine: %s", line)
        return last


async def _end(child: asyncio.subprocess.Process) -> None:
    """TERM, then KILL, to its whole process group."""
    for number, patience_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, TERM_S)):
        if child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await child.wait()
