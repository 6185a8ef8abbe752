from __future__ import annotations

import json
import socket
import stat
from typing import Any

import pytest

from orchestrator.errors import StationDown, UserError
from orchestrator.events import StationStarted, TaskAdded


def ask(idle: Any, request: str, *, token: str | None = None, body: bytes = b"") -> tuple[int, dict[str, str]]:
    """One request as bytes: what a client of another make might send."""
    lines = [f"{request} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}"]
    lines += [f"Authorization: Bearer {token}"] if token is not None else []
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(idle.home.socket()))
        link.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        answer = b"".join(iter(lambda: link.recv(65_536), b""))
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(rest)


def test_the_socket_is_its_owners_only(idle: Any) -> None:
    assert stat.S_IMODE(idle.home.socket().stat().st_mode) == 0o600


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_nobody_without_the_token_is_answered(idle: Any, token: str | None) -> None:
    status, said = ask(idle, "POST /v1/stop", token=token)
    assert status == 401
    assert "token" in said["error"]


@pytest.mark.parametrize(
    ("request_line", "body", "status"),
    [
        ("GET /v1/nothing", b"", 404),
        ("DELETE /v1/tasks", b"", 404),
        ("GET /v1/tasks/nobody", b"", 422),
        ("GET /v1/snapshot?after=-1", b"", 400),
        ("POST /v1/tasks", b"{", 400),
        ("POST /v1/tasks", b'{"tasks": [{"id": "x"}]}', 400),
        ("POST /v1/tasks/nobody/say", b'{"text": 1}', 400),
        ("POST /v1/tasks/nobody/dance", b"", 404),
        ("POST /v1/tasks/nobody/merge", b"{}", 422),
    ],
)
def test_what_is_not_understood_gets_an_error_and_a_hint(idle: Any, request_line: str, body: bytes, status: int) -> None:
    got, said = ask(idle, request_line, token=idle.home.read_token(), body=body)
    assert got == status
    assert said["error"]
    assert "hint" in said


def test_a_task_waits_and_says_for_what_while_the_engine_is_down(idle: Any) -> None:
    assert idle.client.add([idle.spec("waits")]) == ["waits"]
    row = idle.row("waits")
    assert (row.state, row.attempt) == ("queued", 0)
    assert row.waiting_for is not None
    assert row.waiting_for.startswith("engine:")


def test_an_id_that_exists_is_refused_and_nothing_is_queued(idle: Any) -> None:
    idle.client.add([idle.spec("twice")])
    with pytest.raises(UserError, match="twice"):
        idle.client.add([idle.spec("other"), idle.spec("twice")])
    with pytest.raises(UserError, match="other"):
        idle.client.task("other")


def test_a_snapshot_after_a_number_holds_only_what_changed(idle: Any) -> None:
    idle.client.add([idle.spec("before")])
    seen = idle.client.snapshot()
    assert "before" in [row.id for row in seen.tasks]
    idle.client.add([idle.spec("after")])
    fresh = idle.client.snapshot(seen.seq)
    assert [row.id for row in fresh.tasks] == ["after"]
    assert fresh.queue["queued"] == seen.queue["queued"] + 1


def test_events_come_in_order_and_go_on_while_one_follows(idle: Any) -> None:
    first = next(idle.client.events())
    assert isinstance(first.fact, StationStarted)
    after = idle.seq()
    stream = idle.client.events(after, follow=True)
    idle.client.add([idle.spec("followed")])
    event = next(stream)
    assert (event.seq, event.task, event.fact) == (after + 1, "followed", TaskAdded(title="followed"))


def test_a_reader_who_does_not_read_stops_nobody(idle: Any) -> None:
    lazy = idle.client.events(0, follow=True)
    next(lazy)
    for number in range(100):
        idle.client.add([idle.spec(f"many-{number}")])
    assert idle.client.snapshot().queue["queued"] >= 100


def test_an_attempt_that_never_was_has_no_log_and_no_diff(idle: Any) -> None:
    idle.client.add([idle.spec("fresh")])
    with pytest.raises(UserError, match="no attempt"):
        idle.client.log("fresh")
    with pytest.raises(UserError, match="no snapshot"):
        idle.client.diff("fresh")
    with pytest.raises(UserError, match="queued and cannot be merged"):
        idle.client.merge("fresh")


def test_a_second_station_is_refused_with_the_firsts_pid(idle: Any) -> None:
    with pytest.raises(UserError, match=str(idle.client.status().pid)):
        idle.up_again()


def test_without_a_station_the_client_says_how_to_start_one(yard: Any) -> None:
    with pytest.raises(StationDown) as down:
        yard.client.status()
    assert "stationmaster up" in down.value.hint


def test_a_station_that_cannot_start_says_why(yard: Any) -> None:
    with pytest.raises(UserError, match="is no endpoint"):
        yard.up(endpoint="nonsense")
    yard.home.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(UserError, match="ended at once"):
        yard.up()
