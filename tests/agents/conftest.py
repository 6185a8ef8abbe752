"""For the tests of the agents: a real HTTP server that plays scripted bytes, a sandbox without walls, and an agent on a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from agents.agent import Agent
from agents.events import AgentFact
from agents.gate import Gate
from agents.messages import Message, System, User
from agents.meter import Meter
from agents.model import ChatModel
from agents.tools.toolbox import Toolbox
from agents.trajectory import Trajectory
from workspaces.process import Completed, run_process
from workspaces.sandbox import SandboxKind

Ending = Literal["end", "eof", "reset", "silence", "hang-up", "slow-head"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`ending`: the body's proper end, the connection closed in its middle, a TCP reset, nothing more at all, no answer to begin with, or a
    head that never ends. After `body` comes `again`, `every_s` seconds: for ever when the ending is silence, else once.
    """

    body: Sequence[bytes] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: dict[str, str] = field(default_factory=dict)
    again: bytes = b""
    every_s: float = 0.0
    ending: Ending = "end"


@dataclass(frozen=True, kw_only=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Endpoint:
    """Plays `answers` in order, the last one for ever. Models are listed as `models`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.models: list[dict[str, object]] = [{"id": "m", "max_model_len": 8192}]
        self.connections = 0
        self._open = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.url = ""

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open += 1
        self.idle.clear()
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._open -= 1
            if not self._open:
                self.idle.set()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if path == "/v1/models":
            return await self._send(writer, Answer(body=[json.dumps({"data": self.models}).encode()], content_type="application/json"))
        self.asked.append(Asked(method=method, path=path, headers=headers, body=json.loads(body)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.ending == "hang-up":
            writer.transport.abort()
            return False
        if answer.ending == "slow-head":
            await self._slow_head(writer)
        whole = await self._send(writer, answer)
        if answer.ending == "silence":
            await reader.read()  # until the client gives up
        return whole

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> bool:
        headers = {"content-type": answer.content_type, "transfer-encoding": "chunked", **answer.headers}
        writer.write(f"HTTP/1.1 {answer.status} Whatever\r\n".encode())
        writer.write("".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n")
        for piece in answer.body:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        while answer.again:
            await asyncio.sleep(answer.every_s)
            writer.write(b"%x\r\n%s\r\n" % (len(answer.again), answer.again))
            await writer.drain()
            if answer.ending != "silence":
                break
        match answer.ending:
            case "end":
                writer.write(b"0\r\n\r\n")
                return True
            case "eof":
                return False
            case "reset":
                writer.transport.abort()
                return False
            case "silence" | "hang-up" | "slow-head":
                return False

    async def _slow_head(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            await asyncio.sleep(0.02)
            writer.write(b"x: y\r\n")
            await writer.drain()


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    played = Endpoint()
    server = await asyncio.start_server(played.connection, "127.0.0.1", 0)
    played.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield played
    async with asyncio.timeout(5):
        await played.idle.wait()


class ShellSandbox:
    """Real commands in the workspace, nothing hidden."""

    kind: SandboxKind = "none"

    def __init__(self, root: Path) -> None:
        self._root = root

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        return await run_process(
            ["sh", "-c", command], cwd=self._root, env=env, timeout_s=timeout_s, limit_bytes=limit_bytes, merge_output=True
        )


class Clock:
    """Stands still; sleeping moves it on."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)

    def gate(self) -> Gate:
        return Gate(now=self.now, sleep=self.sleep, jitter=lambda: 0.5)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def tools(root: Path) -> Toolbox:
    return Toolbox(root, ShellSandbox(root))


@dataclass(frozen=True, kw_only=True)
class Bounds:
    steps: int = 20
    tokens: int = 10_000
    seconds: float = 60.0


OPENING: list[Message] = [System(text="You work."), User(text="Do it.")]


class Bench:
    """An agent with all that it reports; `said` is what a person says after the next step."""

    def __init__(self, tools: Toolbox, path: Path) -> None:
        self.tools = tools
        self.trajectory = Trajectory(path)
        self.facts: list[AgentFact] = []
        self.steps: list[tuple[int, bool]] = []
        self.said: list[User] = []
        self.meter = Meter()

    async def emit(self, fact: AgentFact) -> None:
        self.facts.append(fact)

    async def after_step(self, step: int, mutated: bool) -> list[User]:
        self.steps.append((step, mutated))
        said, self.said = self.said, []
        return said

    def agent(self, model: ChatModel, *, limits: Bounds | None = None, window_tokens: int | None = None, elapsed_s: float = 0.0) -> Agent:
        return Agent(
            model=model,
            tools=self.tools,
            emit=self.emit,
            trajectory=self.trajectory,
            history=self.trajectory.load(),
            meter=self.meter,
            limits=limits or Bounds(),
            session="task-1",
            after_step=self.after_step,
            window_tokens=window_tokens,
            elapsed_s=elapsed_s,
        )

    def of(self, kind: type[AgentFact]) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


@pytest.fixture
def bench(tools: Toolbox, tmp_path: Path) -> Bench:
    return Bench(tools, tmp_path / "1.jsonl")
