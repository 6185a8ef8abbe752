"""A reply put together out of its chunks: S1, S3, S4, S5."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.errors import ModelFault
from agents.messages import Assistant, Usage
from agents.meter import Meter
from agents.stream import LIVE_CHARACTERS, ReplyBuilder


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
    builder = ReplyBuilder(meter or Meter())
    for one in events:
        builder.take([one])
    return builder.message(max_tokens=max_tokens)


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
