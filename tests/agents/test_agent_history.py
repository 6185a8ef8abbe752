"""The conversation as it is sent, the trajectory on disk, and what counts as going round in circles: S10, E9."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import TrajectoryDamaged
from agents.history import INTERRUPTED, open_calls, well_formed
from agents.messages import Assistant, Message, System, ToolCall, ToolResult, Usage, User
from agents.scripted import calls, says
from agents.stuck import CUT_OFF, MARKUP, NUDGE, remark, stuck
from agents.submission import submitted
from agents.trajectory import Trajectory
from agents.wire import request_messages


def call(call_id: str, name: str = "list", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def turn(*tool_calls: ToolCall, text: str = "") -> Assistant:
    return Assistant(text=text, tool_calls=tool_calls, finish_reason="tool_calls", usage=Usage(input_tokens=10, output_tokens=1))


def result(call_id: str, text: str = "done", *, ok: bool = True) -> ToolResult:
    return ToolResult(call_id=call_id, name="list", text=text, ok=ok)


ASKED: list[Message] = [System(text="s"), User(text="u")]


@pytest.mark.parametrize("arguments", ['{"cmd": "ls', '"text"', "[1]", "null", "", "7", '{"path":' + "[" * 150])
def test_s10_arguments_that_are_no_object_are_replaced_by_one_that_says_so(arguments: str) -> None:
    sent = well_formed([*ASKED, turn(call("a", arguments=arguments)), result("a", "wrong", ok=False)])[2]
    assert isinstance(sent, Assistant)
    assert json.loads(sent.tool_calls[0].arguments) == {"invalid_arguments": arguments}


def test_s10_arguments_nested_too_deeply_are_replaced_too() -> None:
    deep = call("a", arguments='{"path":' + "[" * 100_000)
    sent = well_formed([*ASKED, turn(deep), result("a", "wrong", ok=False)])[2]
    assert isinstance(sent, Assistant)
    assert json.loads(sent.tool_calls[0].arguments) == {"invalid_arguments": deep.arguments[:200]}
    assert stuck(walked(*[("write", deep.arguments + " " * n, "wrong") for n in range(6)])) is not None


def test_s10_names_that_no_server_takes_are_replaced() -> None:
    sent = well_formed([*ASKED, turn(call("a", name='run_shell command="ls"'), call("b", name="")), result("a"), result("b")])[2]
    assert isinstance(sent, Assistant)
    assert [one.name for one in sent.tool_calls] == ["invalid", "invalid"]


def test_s10_pairs_are_completed_and_orphans_dropped() -> None:
    sent = well_formed([*ASKED, result("ghost"), turn(call("a"), call("b")), result("b"), result("b"), User(text="hey"), turn(call("c"))])
    assert [(type(one).__name__, getattr(one, "call_id", None)) for one in sent] == [
        ("System", None),
        ("User", None),
        ("Assistant", None),
        ("ToolResult", "b"),
        ("ToolResult", "a"),
        ("User", None),
        ("Assistant", None),
        ("ToolResult", "c"),
    ]
    assert sent[4] == ToolResult(call_id="a", name="list", text=INTERRUPTED, ok=False)


def test_s10_empty_replies_are_dropped() -> None:
    assert well_formed([*ASKED, Assistant(text="", reasoning="hm", finish_reason="stop"), User(text="go on")]) == [
        *ASKED,
        User(text="go on"),
    ]


IDS = st.sampled_from(["a", "b", "c"])
TURNS = st.builds(
    lambda ids, text, arguments: Assistant(
        text=text, tool_calls=tuple(call(one, arguments=arguments) for one in ids), finish_reason="stop"
    ),
    st.lists(IDS, unique=True, max_size=3),
    st.sampled_from(["", "words"]),
    st.sampled_from(["{}", "{", '{"a": 1}']),
)
MESSAGES = st.lists(st.one_of(st.builds(lambda one: result(one), IDS), TURNS, st.just(User(text="u"))), max_size=8)


@given(MESSAGES)
def test_s10_whatever_the_history_what_is_sent_is_well_formed(history: list[Message]) -> None:
    sent = request_messages(well_formed(history))
    expected: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            assert message["tool_call_id"] in expected
            expected.remove(str(message["tool_call_id"]))
            continue
        assert expected == []
        tool_calls = message.get("tool_calls", [])
        assert message["content"] or tool_calls
        for one in tool_calls:  # type: ignore[attr-defined]
            assert isinstance(json.loads(one["function"]["arguments"]), dict)
            expected.append(one["id"])
    assert expected == []


@given(MESSAGES, MESSAGES)
def test_a_longer_history_begins_with_the_same_bytes(history: list[Message], more: list[Message]) -> None:
    if open_calls(history):
        return
    shorter, longer = well_formed(history), well_formed([*history, User(text="next"), *more])
    assert longer[: len(shorter)] == shorter


def walked(*rounds: tuple[str, str, str]) -> list[Message]:
    """Steps of one call each: name, arguments, result."""
    history: list[Message] = list(ASKED)
    for number, (name, arguments, text) in enumerate(rounds):
        history += [turn(call(f"c{number}", name, arguments)), result(f"c{number}", text)]
    return history


def test_e9_the_same_call_with_the_same_result_is_stuck_at_the_sixth_time() -> None:
    rounds = [("read", '{"path": "a"}', "text")] * 6
    assert stuck(walked(*rounds[:5])) is None
    assert stuck(walked(*rounds)) is not None


@pytest.mark.parametrize("length", [2, 3])
def test_e9_a_circle_of_several_calls_is_one_too(length: int) -> None:
    circle = [("read", json.dumps({"path": name}), name) for name in "abc"[:length]]
    assert stuck(walked(*(circle * 5))) is None
    assert stuck(walked(*(circle * 6))) is not None


def test_e9_white_space_key_order_and_durations_make_no_difference() -> None:
    spellings = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{ "a":1 ,"b":2 }']
    assert stuck(walked(*(("run", spellings[n % 3], f"exit code 1\nRan 3 tests in 0.0{n}s") for n in range(6)))) is not None


def test_e9_polling_with_changing_output_is_left_alone() -> None:
    assert stuck(walked(*(("run", '{"command": "status"}', f"{n} of 20 done") for n in range(20)))) is None


def test_e9_the_hint_comes_once_before_the_end() -> None:
    rounds = [("read", '{"path": "a"}', "text")] * 6
    hints = []
    for number in range(1, 6):
        before = walked(*rounds[: number - 1])
        new = walked(*rounds[:number])[len(before) :]
        hints.append(len(remark(before, new[0], new[1:])))  # type: ignore[arg-type]
    assert hints == [0, 0, 1, 0, 0]


def test_e9_several_calls_in_one_reply_do_not_jump_over_the_hint() -> None:
    ids = [call(f"x{n}") for n in range(5)]
    assert len(remark(ASKED, turn(*ids), [result(one.id) for one in ids])) == 1


def test_e9_replies_without_a_call_are_nudged_and_the_third_is_stuck() -> None:
    history: list[Message] = [*ASKED, *walked(("list", "{}", "x"))[2:]]
    for _ in range(2):
        history += [says("I would say"), *remark(history, says("I would say"), [])]
        assert stuck(history) is None
    history += [Assistant(text="", finish_reason="stop"), User(text=NUDGE)]
    assert stuck(history) is not None


def test_a_person_who_speaks_starts_the_count_of_silent_replies_anew() -> None:
    silent = [says("hm"), User(text=NUDGE)]
    assert stuck([*ASKED, *silent, *silent, User(text="look at a.py"), *silent]) is None


@pytest.mark.parametrize(
    ("reply", "text"),
    [(says("ok"), NUDGE), (says("ok", finish_reason="length"), CUT_OFF), (says('<tool_call>{"name": "list"}</tool_call>'), MARKUP)],
)
def test_the_nudge_fits_what_went_wrong(reply: Assistant, text: str) -> None:
    assert remark(ASKED, reply, []) == [User(text=text)]


MIXED: list[Message] = [*ASKED, turn(call("a"), text="é"), result("a", "x\ny"), Assistant(text="", reasoning="hm", finish_reason="stop")]


def test_a_trajectory_gives_back_what_it_was_given(tmp_path: Path) -> None:
    trajectory = Trajectory(tmp_path / "1.jsonl")
    assert trajectory.load() == []
    trajectory.append(MIXED[:2])
    trajectory.append(MIXED[2:])
    assert Trajectory(trajectory.path).load() == MIXED
    assert [json.loads(line)["role"] for line in trajectory.path.read_text().splitlines()] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_line_torn_anywhere_is_dropped_and_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    Trajectory(path).append(MIXED)
    data = path.read_bytes()
    whole = data.rindex(b"\n", 0, -1) + 1
    for cut in range(whole, len(data)):
        path.write_bytes(data[:cut])
        trajectory = Trajectory(path)
        assert trajectory.load() == MIXED[:-1]
        trajectory.append(MIXED[-1:])
        assert Trajectory(path).load() == MIXED


def test_calls_whose_results_were_torn_off_are_closed_honestly_in_the_file_too(tmp_path: Path) -> None:
    trajectory = Trajectory(tmp_path / "1.jsonl")
    trajectory.append([*ASKED, turn(call("a"), call("b")), result("a")])
    closed = [*ASKED, turn(call("a"), call("b")), result("a"), ToolResult(call_id="b", name="list", text=INTERRUPTED, ok=False)]
    assert trajectory.load() == closed
    assert Trajectory(trajectory.path).load() == closed


def test_an_open_submission_survives_loading(tmp_path: Path) -> None:
    trajectory = Trajectory(tmp_path / "1.jsonl")
    trajectory.append([*ASKED, calls(("submit", {"summary": "all done"}))])
    history = trajectory.load()
    outcome = submitted(history)
    assert outcome is not None
    assert outcome.summary == "all done"


def test_a_broken_line_further_up_is_an_error_not_a_shorter_history(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    path.write_bytes(b"{}\n" + msgspec.json.encode(User(text="u")) + b"\n")
    with pytest.raises(TrajectoryDamaged, match=r"line 1 of .*1\.jsonl"):
        Trajectory(path).load()


@pytest.mark.parametrize("damage", [b"\0" * 40, b'{"role": "user", "te', b"[" * 100_000, b"\xff\xfe", b'{"role": "nobody"}'])
def test_a_damaged_line_hides_none_of_the_others_from_those_who_look_back(tmp_path: Path, damage: bytes) -> None:
    trajectory = Trajectory(tmp_path / "1.jsonl")
    trajectory.append(MIXED)
    lines = trajectory.path.read_bytes().split(b"\n")
    lines[1] = damage
    trajectory.path.write_bytes(b"\n".join(lines) + b'{"role": "us')
    before = trajectory.path.read_bytes()
    assert trajectory.readable() == [MIXED[0], *MIXED[2:]]
    with pytest.raises(TrajectoryDamaged, match="line 2"):
        trajectory.load()
    assert trajectory.path.read_bytes() == before
    assert Trajectory(tmp_path / "none.jsonl").readable() == []


def test_what_a_full_disk_took_of_a_step_is_taken_back(tmp_path: Path) -> None:
    trajectory = Trajectory(tmp_path / "1.jsonl")
    trajectory.append(ASKED)
    size = trajectory.path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            trajectory.append(MIXED[2:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert trajectory.path.stat().st_size == size
    assert trajectory.load() == ASKED
