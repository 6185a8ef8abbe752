"""A task's checks: commands that must pass in a fresh checkout of its snapshot, in its sandbox, before its work counts as verified.

Not in the workspace: what is reviewed and merged is the snapshot, and a workspace holds more (what git ignores) and goes on changing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from orchestrator.events import CheckFinished
from workspaces.sandbox import Sandbox

CHECK_S = 600.0
OUTPUT_BYTES = 16_384
REFUSED = "The work is not accepted: checks failed."
WHERE = "They ran in a fresh checkout of everything that git does not ignore, not in your workspace."


async def run_checks(sandbox: Sandbox, commands: Sequence[str], *, permits: asyncio.Semaphore) -> AsyncIterator[CheckFinished]:
    """Each check's result as it comes, in order; all are run, also after one has failed. Raises SandboxUnavailable."""
    for command in commands:
        async with permits:
            done = await sandbox.run(command, timeout_s=CHECK_S, limit_bytes=OUTPUT_BYTES)
        output = done.stdout.decode(errors="backslashreplace")
        exit_code = None if done.timed_out else done.exit_code
        yield CheckFinished(command=command, exit_code=exit_code, seconds=done.seconds, output=output)


def passed(results: Sequence[CheckFinished]) -> bool:
    return all(result.exit_code == 0 for result in results)


def refusal(results: Sequence[CheckFinished]) -> str:
    """What the agent is told: each check that failed, with its output."""
    parts = [f"{REFUSED} {WHERE} Mend it, then call submit again."]
    for result in results:
        if result.exit_code != 0:
            ended = f"ran out of time after {CHECK_S:.0f} s" if result.exit_code is None else f"exited {result.exit_code}"
            parts.append(f"$ {result.command}\n({ended})\n{result.output.strip()}")
    return "\n\n".join(parts)


def summary(results: Sequence[CheckFinished]) -> str:
    """One line for people: which checks failed."""
    failed = [result.command for result in results if result.exit_code != 0]
    return f"{len(failed)} of {len(results)} checks failed: " + "; ".join(failed)
