"""The station's API as Python calls: what the command line and the dashboard use, and nothing else.

On `http.client` over the Unix socket, so that a command starts fast. A client may be used from several threads: each call has a connection of its own.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from orchestrator.errors import StationDown, UserError
from orchestrator.events import Event
from orchestrator.home import Home
from orchestrator.task import TaskSpec
from orchestrator.views import DiffDocument, LogDocument, MergeView, Snapshot, StatusDocument, TaskDetail, TaskRow

T = TypeVar("T")

CALL_S = 30.0
# A merge waits its turn behind others of the same target; a check of conflicts in a huge repository takes its time.
MERGE_S = 600.0
# The station sends an empty line every 5 s: three missing ones mean that it is gone.
SILENCE_S = 15.0


class StationClient:
    """Raises StationDown when nothing answers at the home's socket, UserError for what the station refuses. Reads wait for `patience_s`."""

    def __init__(self, home: Home, *, patience_s: float = CALL_S) -> None:
        self.home = home
        self._patience_s = patience_s

    def status(self) -> StatusDocument:
        return self._get("/v1/status", StatusDocument)

    def snapshot(self, after: int = 0) -> Snapshot:
        """`after` 0: all tasks. Else the rows that changed after that sequence number, and all that are at work now."""
        return self._get(f"/v1/snapshot?after={after}", Snapshot)

    def tasks(self) -> list[TaskRow]:
        """All rows, in the order of submission."""
        return self.snapshot().tasks

    def task(self, task: str) -> TaskDetail:
        return self._get(f"/v1/tasks/{quote(task, safe='')}", TaskDetail)

    def log(self, task: str, *, attempt: int | None = None, step: int | None = None) -> LogDocument:
        """The trajectory of an attempt (the last one for None), or one step of it."""
        wanted = {name: value for name, value in (("attempt", attempt), ("step", step)) if value is not None}
        return self._get(f"/v1/tasks/{quote(task, safe='')}/log?{urlencode(wanted)}", LogDocument)

    def diff(self, task: str, *, since_last_look: bool = False) -> DiffDocument:
        return self._get(f"/v1/tasks/{quote(task, safe='')}/diff{'?since_last_look=1' if since_last_look else ''}", DiffDocument)

    def events(self, after: int = 0, *, task: str | None = None, follow: bool = False) -> Iterator[Event]:
        """Stored facts after a sequence number. With `follow` it goes on until the caller stops or the station ends.

        The station cuts off a reader that is too slow, or is stopped: then StationDown is raised; call again with the last `seq`.
        """
        wanted: dict[str, str | int] = {"after": after}
        if task is not None:
            wanted["task"] = task
        if follow:
            wanted["follow"] = 1
        decoder = msgspec.json.Decoder(Event)
        connection, response = self._open("GET", f"/v1/events?{urlencode(wanted)}", None, SILENCE_S)
        try:
            while line := response.readline():
                if line.strip():
                    yield decoder.decode(line)
        except (OSError, http.client.HTTPException) as gone:
            raise self._down(gone) from gone
        finally:
            connection.close()
        if follow:
            raise self._down(None)

    def add(self, specs: Sequence[TaskSpec]) -> list[str]:
        """Queue tasks, all or none. The ids, in the same order."""
        return self._post("/v1/tasks", {"tasks": list(specs)}, Added).added

    def cancel(self, task: str) -> TaskRow:
        return self._command(task, "cancel", {}, TaskRow)

    def retry(self, task: str, comment: str = "") -> TaskRow:
        return self._command(task, "retry", {"comment": comment}, TaskRow)

    def approve(self, task: str) -> TaskRow:
        return self._command(task, "approve", {}, TaskRow)

    def reject(self, task: str, comment: str = "") -> TaskRow:
        """With a comment the task is queued again as a new attempt that opens with it; without one it is `rejected`."""
        return self._command(task, "reject", {"comment": comment}, TaskRow)

    def merge(self, task: str) -> MergeView:
        """Waits until the merge has landed or was refused; the view says which."""
        return self._command(task, "merge", {}, MergeView, limit_s=MERGE_S)

    def say(self, task: str, text: str) -> TaskRow:
        """A word to the agent at work, delivered after its current step."""
        return self._command(task, "say", {"text": text}, TaskRow)

    def look(self, task: str) -> TaskRow:
        """Remember the present snapshot as seen: what `diff --since-last-look` starts from."""
        return self._command(task, "look", {}, TaskRow)

    def stop(self) -> None:
        """Ask the station to stop. It has not stopped yet when this returns: see `orchestrator.launch.stop_station`."""
        self._post("/v1/stop", {}, Empty)

    def _command(self, task: str, verb: str, body: object, into: type[T], *, limit_s: float = CALL_S) -> T:
        return self._post(f"/v1/tasks/{quote(task, safe='')}/{verb}", body, into, limit_s=limit_s)

    def _get(self, path: str, into: type[T]) -> T:
        return msgspec.json.decode(self._call("GET", path, None, self._patience_s), type=into)

    def _post(self, path: str, body: object, into: type[T], *, limit_s: float = CALL_S) -> T:
        return msgspec.json.decode(self._call("POST", path, msgspec.json.encode(body), limit_s), type=into)

    def _call(self, method: str, path: str, body: bytes | None, limit_s: float) -> bytes:
        connection, response = self._open(method, path, body, limit_s)
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as gone:
            raise self._down(gone) from gone
        finally:
            connection.close()

    def _open(
        self, method: str, path: str, body: bytes | None, limit_s: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        token = self.home.read_token()
        if token is None:
            raise self._down(None)
        connection = _UnixConnection(str(self.home.socket()), limit_s)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            refused = response.read() if response.status >= 400 else None
        except (OSError, http.client.HTTPException) as gone:
            connection.close()
            raise self._down(gone) from gone
        if refused is not None:
            connection.close()
            raise _refusal(response.status, refused)
        return connection, response

    def _down(self, cause: Exception | None) -> StationDown:
        if isinstance(cause, TimeoutError):
            return StationDown(f"the station of {self.home.path} does not answer", hint=f"look into {self.home.log}")
        return StationDown(f"no station is running for {self.home.path}", hint=f"start it with `stationmaster up{self.home.option()}`")


class Added(msgspec.Struct, frozen=True):
    """What `POST /v1/tasks` answers."""

    added: list[str]


class Empty(msgspec.Struct, frozen=True):
    """A `{}`."""


class _Refusal(msgspec.Struct, frozen=True):
    error: str
    hint: str = ""


def _refusal(status: int, body: bytes) -> UserError:
    try:
        said = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:
        said = _Refusal(error=f"the station answered {status}: {body[:200].decode(errors='replace')}")
    return UserError(said.error, hint=said.hint)


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a socket in the file system."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("station", timeout=timeout_s)
        self._path = path
        self._limit_s = timeout_s

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._limit_s)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            self.sock = None
            raise
