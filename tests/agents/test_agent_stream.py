"""A reply put together out of its chunks: S1, S3, S4, S5."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.calls import MOST_CALLS, NAME_CHARACTERS
from agents.errors import ModelFault
from agents.messages import Assistant, Usage
from agents.meter import Meter
from agents.stream import LIVE_CHARACTERS, MOST_CHARACTERS, ReplyBuilder


def event(delta: Any = None, *, finish: str | None = None, **more: object) -> bytes:
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return json.dumps({"choices": choices, **more}).encode()


def usage(prompt: int, completion: int, cached: int | None = None) -> dict[str, object]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **details}


def call(index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> dict[str, object]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entries = {"index": index, "id": call_id, "function": function or None}
    return {"tool_calls": [{key: value for key, value in entries.items() if value is not None}]}


def built(*events: bytes, meter: Meter | None = None, max_tokens: int | None = None) -> Assistant:
    builder = ReplyBuilder(meter or Meter(), max_tokens=max_tokens)
    for one in events:
        builder.take([one])
    return builder.message()


STOP = event({}, finish="stop")
CALLS = event({}, finish="tool_calls")


@pytest.mark.parametrize(
    "odd",
    [
        b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
        b'{"id":"x","object":"chat.completion.chunk"}',
        b'{"choices":null,"usage":null}',
        b'{"choices":[{"delta":null}]}',
        b'{"choices":[{"index":0}]}',
        b'{"choices":[{"delta":{"content":null,"role":null,"tool_calls":null}}]}',
        b'{"choices":[{"delta":{"content":""}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":null,"id":null,"function":null}]},"finish_reason":null}]}'.replace(
            b'{"index":null,"id":null,"function":null}', b""
        ),
        b'{"choices":[{"delta":{},"finish_reason":""}]}',
        b'{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":null,"prompt_tokens_details":null}}',
        b"",
    ],
)
def test_s03_chunks_without_the_usual_shape_change_nothing(odd: bytes) -> None:
    reply = built(odd, event({"content": "a"}), odd, event({"content": "b"}), odd, STOP, odd)
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("ab", (), "stop")


def test_s03_two_finish_chunks_are_one_finish() -> None:
    assert built(event({"content": "a"}), STOP, STOP).text == "a"


def test_s03_usage_is_the_last_value_seen() -> None:
    reply = built(*(event({"content": "x"}, usage=usage(10, n)) for n in (1, 2, 5)), STOP, event(usage=usage(10, 5, cached=8)))
    assert reply.usage == Usage(input_tokens=10, output_tokens=5, cached_tokens=8)


@pytest.mark.parametrize(
    "odd",
    [
        '{"prompt_tokens": -5, "completion_tokens": 3}',
        '{"prompt_tokens": 5, "completion_tokens": -1000000}',
        '{"prompt_tokens": 9223372036854775807, "completion_tokens": 9223372036854775807}',
        json.dumps({"prompt_tokens": 10**30, "completion_tokens": 10**30}),
        '{"prompt_tokens": 1' + "0" * 6_000 + "}",
        '{"prompt_tokens": 5, "completion_tokens": 1000000001}',
        '{"prompt_tokens": 5, "completion_tokens": 100000}',  # in a stream of a few hundred bytes, with 64 asked for
        '{"prompt_tokens": 5.5, "completion_tokens": 7}',
        '{"prompt_tokens": 5, "completion_tokens": "7"}',
        '{"prompt_tokens": true, "completion_tokens": 7}',
        '{"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": []}',
        '"seven"',
        "[7]",
    ],
)
def test_usage_that_cannot_be_counts_as_none_reported(odd: str) -> None:
    meter = Meter()
    builder = ReplyBuilder(meter, max_tokens=64)
    builder.take([event({"content": "a"}), STOP, b'{"choices":[],"usage":%b}' % odd.encode()])
    assert builder.odd_usage
    assert builder.message().usage is None
    assert (meter.input_tokens, meter.cached_tokens, meter.output_tokens) == (0, None, 0)


def test_usage_that_cannot_be_does_not_undo_the_one_before() -> None:
    reply = built(event({"content": "a"}, usage=usage(10, 3, 4)), STOP, event(usage=usage(10, -1)))
    assert reply.usage == Usage(input_tokens=10, output_tokens=3, cached_tokens=4)


@pytest.mark.parametrize("part", [{"prompt_tokens": 5}, {"completion_tokens": 5}, {}])
def test_usage_with_a_part_missing_is_none(part: dict[str, object]) -> None:
    assert built(event({"content": "a"}), STOP, event(usage=part)).usage is None


@pytest.mark.parametrize("cached", [-1, 11, 10**12])
def test_cached_tokens_that_cannot_be_leave_the_rest_of_the_usage(cached: int) -> None:
    assert built(event({"content": "a"}), STOP, event(usage=usage(10, 3, cached))).usage == Usage(input_tokens=10, output_tokens=3)


def test_tokens_that_are_not_sent_count_up_to_what_was_asked_for() -> None:
    hidden = built(event({"content": "a"}), STOP, event(usage=usage(10, 4_000)), max_tokens=4_096)
    assert hidden.usage == Usage(input_tokens=10, output_tokens=4_000)


def test_s03_absent_usage_is_unknown_not_zero() -> None:
    meter = Meter()
    assert built(event({"content": "a"}), STOP, meter=meter).usage is None
    assert (meter.output_tokens, meter.cached_tokens) == (0, None)


def test_the_meter_rises_with_each_chunk_by_the_engines_count_not_by_chunks() -> None:
    meter, seen = Meter(output_tokens=100, input_tokens=1000), []
    builder = ReplyBuilder(meter)
    for tokens in (3, 3, 7):  # speculation: several tokens a chunk, or none
        builder.take([event({"content": "x"}, usage=usage(50, tokens, cached=40))])
        seen.append(meter.output_tokens)
    assert seen == [103, 103, 107]
    assert (meter.input_tokens, meter.cached_tokens) == (1050, 40)


def test_the_meter_of_an_engine_that_counts_at_the_end_rises_then() -> None:
    meter = Meter()
    built(event({"content": "x"}), STOP, event(usage=usage(50, 9)), meter=meter)
    assert (meter.input_tokens, meter.output_tokens) == (50, 9)


def test_what_a_stream_counted_before_it_broke_stays_counted() -> None:
    meter = Meter()
    with pytest.raises(ModelFault, match="without a finish reason"):
        built(event({"content": "x"}, usage=usage(50, 9)), meter=meter)
    assert meter.output_tokens == 9


def test_live_text_is_a_tail_and_goes_when_the_stream_ends() -> None:
    meter = Meter()
    builder = ReplyBuilder(meter)
    builder.take([event({"reasoning": "hm "}), event({"content": "x" * LIVE_CHARACTERS}), event(call(0, "a", "run", '{"command"'))])
    assert meter.streaming
    assert meter.live_text.endswith('x{"command"')
    assert len(meter.live_text) == LIVE_CHARACTERS
    builder.close()
    assert (meter.streaming, meter.live_text) == (False, "")
    assert meter.decode_s is not None


def test_s07_an_error_inside_the_stream_is_a_fault_even_after_text() -> None:
    for error in (
        {"error": {"message": "engine dead", "code": 504}},
        {"error": "engine dead"},
        {"object": "error", "message": "engine dead", "code": 500},
    ):
        with pytest.raises(ModelFault, match="engine dead"):
            built(event({"content": "a"}), json.dumps(error).encode(), STOP)


def test_s07_what_is_no_json_is_a_fault() -> None:
    for rubbish in (b"{", b"[]", b"<html>", b'{"choices":7}', b"\xff"):
        with pytest.raises(ModelFault):
            built(rubbish)


def test_a_chunk_nested_too_deeply_is_a_fault() -> None:
    for where in (b'{"odd":%b}', b'{"choices":[{"delta":{"odd":%b}}]}', b'{"error":{"message":%b}}', b'{"usage":{"prompt_tokens":%b}}'):
        with pytest.raises(ModelFault):
            built(where % (b"[" * 100_000))


def test_what_the_engine_says_of_its_error_is_shown_in_part() -> None:
    with pytest.raises(ModelFault) as raised:
        built(json.dumps({"error": {"message": "x" * 100_000}}).encode())
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("kind", ["content", "reasoning"])
def test_a_reply_far_longer_than_was_asked_for_is_given_up(kind: str) -> None:
    piece = event({kind: "x" * 60_000})
    with pytest.raises(ModelFault, match="more than was asked for"):
        built(*[piece] * 3, max_tokens=100)
    built(*[piece] * 3, STOP, max_tokens=16_384)


def test_without_a_limit_asked_for_a_reply_is_bounded_too() -> None:
    piece, builder = event({"content": "x" * 1_000_000}), ReplyBuilder(Meter())
    with pytest.raises(ModelFault, match="longer than"):
        list(map(builder.take, [[piece]] * 100))
    assert builder.written < 2 * MOST_CHARACTERS


def test_arguments_count_to_a_replys_length() -> None:
    with pytest.raises(ModelFault, match="longer than"):
        built(event(call(0, "a", "write", "{")), *[event(call(0, None, None, "x" * 60_000))] * 3, max_tokens=100)


def test_more_calls_than_anyone_makes_are_a_fault() -> None:
    many = [{"index": n, "id": f"c{n}", "function": {"name": "list", "arguments": "{}"}} for n in range(MOST_CALLS + 1)]
    assert len(built(event({"tool_calls": many[:-1]}), CALLS).tool_calls) == MOST_CALLS
    with pytest.raises(ModelFault, match="tool calls"):
        built(event({"tool_calls": many}), CALLS)


def test_names_ids_and_finish_reasons_are_bounded() -> None:
    reply = built(event(call(0, "i" * 1_000_000, "A" * 100_000, "{}")), event({}, finish="f" * 100_000))
    assert len(reply.tool_calls[0].name) == NAME_CHARACTERS
    assert len(reply.tool_calls[0].id) < 100
    assert len(reply.finish_reason) == NAME_CHARACTERS
    pieces = [event(call(0, "a", f"{n:04}")) for n in range(1_000)]
    assert len(built(*pieces, CALLS).tool_calls[0].name) == NAME_CHARACTERS


def test_a_reply_that_the_engine_gave_up_is_a_fault() -> None:
    with pytest.raises(ModelFault, match="abort"):
        built(event({"content": "a"}), event({}, finish="abort"))


@pytest.mark.parametrize(("finish", "tokens"), [("length", 10), ("tool_calls", 64), ("stop", 64)])
def test_s04_a_reply_that_used_up_its_tokens_was_cut_off_whatever_it_says(finish: str, tokens: int) -> None:
    reply = built(event(call(0, "a", "write", '{"path":"x"}')), event({}, finish=finish), event(usage=usage(5, tokens)), max_tokens=64)
    assert reply.finish_reason == "length"


def test_s05_thinking_is_read_once_under_either_name() -> None:
    for delta in (
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning": "hm", "reasoning_content": "hm"},
        {"reasoning": "", "reasoning_content": "hm"},
    ):
        reply = built(event(delta), event({"content": "yes"}), STOP)
        assert (reply.reasoning, reply.text) == ("hm", "yes")


def test_s05_thinking_left_in_the_text_is_moved() -> None:
    reply = built(event({"content": "<think>hm"}), event({"content": " so</think>\n\nyes"}), STOP)
    assert (reply.reasoning, reply.text) == ("hm so", "yes")
    assert built(event({"content": "the tag </think> ends it"}), STOP).text == "the tag </think> ends it"


def names_and_arguments(*deltas: dict[str, object]) -> list[tuple[str, str]]:
    reply = built(*(event(delta) for delta in deltas), CALLS)
    assert len({one.id for one in reply.tool_calls}) == len(reply.tool_calls)
    assert all(one.id for one in reply.tool_calls)
    return [(one.name, one.arguments) for one in reply.tool_calls]


def test_s01_calls_are_put_together_by_index() -> None:
    assert names_and_arguments(
        call(0, "a", "read", ""), call(0, None, None, '{"path":'), call(0, None, None, '"x"}'), call(1, "b", "list", "{}")
    ) == [("read", '{"path":"x"}'), ("list", "{}")]


def test_s01_pieces_of_two_calls_may_alternate() -> None:
    assert names_and_arguments(call(0, "a", "read", "{"), call(1, "b", "list", "{"), call(0, arguments="}"), call(1, arguments="}")) == [
        ("read", "{}"),
        ("list", "{}"),
    ]


def test_s01_missing_indexes() -> None:
    assert names_and_arguments(call(None, "a", "read", "{"), call(arguments="}"), call(None, "b", "list", "{}")) == [
        ("read", "{}"),
        ("list", "{}"),
    ]
    assert names_and_arguments(call(None, None, "read", "{}"), call(None, None, "list", "{}")) == [("read", "{}"), ("list", "{}")]


def test_s01_every_call_with_index_zero() -> None:
    assert names_and_arguments(call(0, "a", "read", '{"path":"x"}'), call(0, "b", "read", '{"path":"y"}')) == [
        ("read", '{"path":"x"}'),
        ("read", '{"path":"y"}'),
    ]


def test_s01_id_and_name_repeated_with_every_delta() -> None:
    assert names_and_arguments(call(0, "a", "read", "{"), call(0, "a", "read", '"path":'), call(0, "a", "read", '"x"}')) == [
        ("read", '{"path":"x"}')
    ]


def test_s01_the_same_id_for_two_calls_is_told_apart() -> None:
    assert names_and_arguments(call(0, "a", "read", "{}"), call(1, "a", "list", "{}")) == [("read", "{}"), ("list", "{}")]


def test_s01_a_piece_under_a_new_index_belongs_to_the_last_call() -> None:
    assert names_and_arguments(call(0, "a", "read", "{"), call(1, None, None, "}")) == [("read", "{}")]


def test_s01_a_name_in_pieces() -> None:
    assert names_and_arguments(call(0, "a", "se"), call(0, None, "arch"), call(0, None, None, "{}")) == [("search", "{}")]
