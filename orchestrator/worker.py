"""One attempt at a task: workspace, agent loop, checks, and the verified snapshot.

What ends an attempt is caught once, here, and sorted by who must act. Cancellation is no ending: it stops the attempt's processes
and goes on up; what becomes of the task is decided by whoever cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agents.agent import Agent
from agents.errors import ModelUnavailable
from agents.events import AgentFact, ModelAsked, ModelRetried, ToolStarted
from agents.messages import Message, User
from agents.outcome import Faulted, LimitReached, Outcome, Rejected, Stuck, Submitted
from agents.roles.opening import opening
from agents.tools.toolbox import Toolbox
from agents.trajectory import Trajectory
from orchestrator import lookups
from orchestrator.admission import disk_space
from orchestrator.brief import refusals, spoken, with_history
from orchestrator.checks import passed, refusal, run_checks, summary
from orchestrator.clock import Clock
from orchestrator.endpoint import Endpoint
from orchestrator.errors import IllegalTransition, LeaseLost
from orchestrator.events import CheckFinished, SnapshotTaken, WorkspaceCreated
from orchestrator.home import Home
from orchestrator.metrics import LiveAttempt
from orchestrator.queue.queue import Claim, Queue
from orchestrator.snapshots import SnapshotKeeper
from orchestrator.store import Store, StoreFailed
from orchestrator.task import FailureKind
from workspaces.bubblewrap import open_sandbox
from workspaces.clone import Checkout, fresh_checkout
from workspaces.errors import SandboxUnavailable, WorkspaceError
from workspaces.hub import Hub, open_hub
from workspaces.sandbox import Sandbox
from workspaces.snapshot import Snapshot
from workspaces.workspace import Workspace, create_workspace, reopen_workspace

log = logging.getLogger(__name__)

REFUSALS = 2
"""How often an agent may mend its work after failed checks, in one attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all attempts of a station share. `path` is the PATH of the shell that started it."""

    home: Home
    path: str
    clock: Clock
    store: Store
    queue: Queue
    endpoint: Endpoint
    creating: asyncio.Semaphore
    checking: asyncio.Semaphore


async def run_attempt(site: Site, claim: Claim, live: LiveAttempt) -> None:
    """Work on the claim until the task has left this worker's hands. Raises StoreFailed and CancelledError, nothing else."""
    try:
        await Attempt(site, claim, live).run()
    except Exception as error:  # the one place where everything unexpected ends
        await _settle(site, claim, _cause(error))


async def _settle(site: Site, claim: Claim, cause: Exception) -> None:
    if isinstance(cause, StoreFailed):
        raise cause
    if isinstance(cause, LeaseLost):
        log.info("%s/%d: the task is no longer ours", claim.task, claim.attempt)
        return
    kind = _failure_kind(site, cause)
    message = f"{cause}" if kind != "bug" else "".join(traceback.format_exception(cause))[-8_000:]
    log.warning("%s/%d ended: %s: %s", claim.task, claim.attempt, kind, message)
    try:
        await site.queue.fail(claim, kind, message, outcome="error")
    except LeaseLost:
        log.info("%s/%d: the task is no longer ours", claim.task, claim.attempt)
    except IllegalTransition:
        log.exception("%s/%d cannot fail from where it is; its lease will run out", claim.task, claim.attempt)


def _cause(error: Exception) -> Exception:
    """The first plain exception inside groups."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error


def _failure_kind(site: Site, cause: Exception) -> FailureKind:
    match cause:
        case ModelUnavailable():
            return "engine"
        case SandboxUnavailable():
            return "host"
        case OSError() if cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
            return "host"
        case WorkspaceError():
            free, floor = disk_space(site.home.path)
            return "host" if free < floor else "workspace"
        case _:
            return "bug"


class Attempt:
    """The life of one claim in this process."""

    def __init__(self, site: Site, claim: Claim, live: LiveAttempt) -> None:
        self._site = site
        self._claim = claim
        self._live = live
        self._trajectory = Trajectory(site.home.trajectory(claim.task, claim.attempt))
        # What the attempt has used of its seconds, kept beside the trajectory so that a resumed one does not begin at 0.
        self._used = self._trajectory.path.with_suffix(".seconds")
        self._agent: Agent | None = None
        self._keeper: SnapshotKeeper | None = None

    async def run(self) -> None:
        site, claim = self._site, self._claim
        workspace = await self._open_workspace()
        history = await asyncio.to_thread(self._trajectory.load)
        messages = [] if history else await self._opening(workspace)
        await site.queue.move(claim, "running")
        async with asyncio.TaskGroup() as group:
            self._keeper = SnapshotKeeper(workspace, group=group, clock=site.clock, store=self._record, last_commit=claim.snapshot_commit)
            self._agent = self._make_agent(workspace, history)
            await self._work(self._agent, messages, workspace.hub, self._keeper, refused=refusals(history))

    async def _open_workspace(self) -> Workspace:
        """The attempt's own again when it is resumed, a fresh one otherwise."""
        site, claim = self._site, self._claim
        async with site.creating:
            await site.queue.move(claim, "preparing")
            hub = await open_hub(Path(claim.spec.repo), hubs=site.home.hubs, commit=claim.spec.base_commit)
            found = await self._reopened(hub) if claim.resumed else None
            if found is not None and claim.workspace is not None:
                return found
            started = site.clock.monotonic()
            made = found or await create_workspace(
                hub, root=site.home.workspaces, task=claim.task, attempt=claim.attempt, base_commit=claim.spec.base_commit
            )
        seconds = site.clock.monotonic() - started
        await self._record(WorkspaceCreated(workspace=str(made.path), branch=made.branch, base_commit=made.base_commit, seconds=seconds))
        return made

    async def _reopened(self, hub: Hub) -> Workspace | None:
        """None when the attempt was interrupted before it had a workspace. WorkspaceError when it had one that is gone."""
        claim = self._claim
        try:
            return await reopen_workspace(
                hub, root=self._site.home.workspaces, task=claim.task, attempt=claim.attempt, base_commit=claim.spec.base_commit
            )
        except WorkspaceError:
            if claim.workspace is not None:
                raise
            return None

    def _open_sandbox(self, workspace: Workspace | Checkout) -> Sandbox:
        home = self._site.home
        return open_sandbox(self._claim.spec.sandbox, workspace=workspace, hidden=[home.path, home.socket().parent], path=self._site.path)

    async def _opening(self, workspace: Workspace) -> list[Message]:
        """What the conversation begins with. Not for one that has begun, though no step of it is complete: nobody would hear what is taken here."""
        claim, spec = self._claim, self._claim.spec
        self._trajectory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        first = opening(spec.kind, spec.prompt, workspace=workspace.path, checks=spec.checks)
        self._live.has_mail = False
        comments = await self._site.queue.take_messages(claim)
        before, failure = await self._last_attempt()
        return with_history(first, before=before, failure=failure, comments=comments)

    async def _last_attempt(self) -> tuple[list[Message], str]:
        """Trajectory and failure of the attempt before this one."""
        task, number = self._claim.task, self._claim.attempt - 1
        path = self._site.home.trajectory(task, number)
        if number < 1 or not path.exists():
            return [], ""
        view = await self._site.store.read(lambda db: lookups.attempt(db, task, number))
        return await asyncio.to_thread(Trajectory(path).readable), view.failure.message if view and view.failure else ""

    def _make_agent(self, workspace: Workspace, history: list[Message]) -> Agent:
        endpoint, spec = self._site.endpoint, self._claim.spec
        if endpoint.model is None:
            raise ModelUnavailable(endpoint.problem or "the engine has gone")
        return Agent(
            model=endpoint.model,
            tools=Toolbox(workspace.path, self._open_sandbox(workspace)),
            emit=self._emit,
            trajectory=self._trajectory,
            history=history,
            meter=self._live.meter,
            limits=spec.limits,
            session=self._claim.task,
            after_step=self._after_step,
            window_tokens=endpoint.info.max_model_len if endpoint.info else None,
            elapsed_s=self._used_s(),
        )

    def _used_s(self) -> float:
        try:
            return float(self._used.read_text())
        except (FileNotFoundError, ValueError):  # none yet, or the station was killed while it wrote
            return 0.0

    async def _work(self, agent: Agent, messages: list[Message], hub: Hub, keeper: SnapshotKeeper, *, refused: int) -> None:
        """Agent and checks take turns until the work is verified or the attempt has failed."""
        queue, claim = self._site.queue, self._claim
        while True:
            outcome = await agent.run(messages)
            snapshot = await keeper.take(f"{claim.task}: {type(outcome).__name__.lower()}")
            if not isinstance(outcome, Submitted):
                await self._fail(outcome)
                return
            await queue.move(claim, "claimed-done")
            results = await self._check(hub, snapshot)
            if passed(results):
                await queue.verify(claim)
                return
            agent.refuse(refusal(results))
            if refused >= REFUSALS:
                await queue.fail(claim, "checks", summary(results), outcome="submitted")
                return
            refused += 1
            await queue.move(claim, "running", summary(results))

    async def _check(self, hub: Hub, snapshot: Snapshot) -> list[CheckFinished]:
        claim, site = self._claim, self._site
        self._live.activity = "checks"
        results: list[CheckFinished] = []
        if not claim.spec.checks:
            return results
        place = site.home.checks / claim.task / f"{claim.attempt}"
        async with contextlib.AsyncExitStack() as at_the_end:
            async with site.creating:
                checkout = await at_the_end.enter_async_context(fresh_checkout(hub, path=place, commit=snapshot.commit))
            async for result in run_checks(self._open_sandbox(checkout), claim.spec.checks, permits=site.checking):
                results.append(result)
                await self._record(result)
        return results

    async def _fail(self, outcome: Outcome) -> None:
        kind, word = _ending(outcome)
        await self._site.queue.fail(self._claim, kind, getattr(outcome, "message", ""), outcome=word)

    async def _emit(self, fact: AgentFact) -> None:
        match fact:
            case ModelAsked():
                self._live.activity = "model"
            case ModelRetried():
                self._live.activity = "waiting-engine"
            case ToolStarted():
                self._live.activity = "tool"
                if self._keeper is not None:
                    await self._keeper.settle()
            case _:
                pass
        await self._record(fact)

    async def _after_step(self, step: int, mutated: bool) -> list[User]:
        if self._agent is not None:
            self._used.write_text(f"{self._agent.elapsed_s:.1f}")
        if mutated and self._keeper is not None:
            self._keeper.begin(f"{self._claim.task}: step {step}")
        if not self._live.has_mail:
            return []
        self._live.has_mail = False
        return spoken(await self._site.queue.take_messages(self._claim))

    async def _record(self, fact: AgentFact | WorkspaceCreated | SnapshotTaken | CheckFinished) -> None:
        await self._site.queue.record(self._claim, [fact])


def _ending(outcome: Outcome) -> tuple[FailureKind, str]:
    """(failure kind, the loop's word) of an outcome that is no submission."""
    match outcome:
        case LimitReached():
            return "limit", "limit"
        case Stuck():
            return "stuck", "stuck"
        case Rejected():
            return "model", "rejected"
        case Faulted():
            return "engine", "faulted"
        case Submitted():
            return "checks", "submitted"
