"""Files that were damaged under a station's feet."""

from __future__ import annotations

from typing import Any

from agents.events import StepCompleted
from orchestrator.events import StateChanged


def test_an_attempt_whose_conversation_is_damaged_ends_and_the_next_one_begins_anew(yard: Any) -> None:
    yard.script("task", yard.call("write", path="b.txt", content="two\n"), yard.call("run", command="exec sleep 300"))
    yard.up()
    yard.client.add([yard.spec("task")])
    yard.wait_for(lambda event: isinstance(event.fact, StepCompleted), task="task")
    yard.kill()
    path = yard.home.trajectory("task", 1)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], b"\0" * 80, *lines[3:]]))
    yard.up_again()
    ended = yard.wait_for(lambda event: isinstance(event.fact, StateChanged) and event.fact.new == "queued", task="task")
    assert ended.fact.reason.startswith("workspace: the conversation cannot go on: line 3 of ")
    first = yard.client.task("task").attempts[0]
    assert (first.outcome, first.failure.kind) == ("error", "workspace")
    shown = yard.client.log("task", attempt=1).messages
    assert len(shown) == len(lines) - 1
    assert b"line 3 of this attempt's conversation is damaged" in bytes(shown[2])
