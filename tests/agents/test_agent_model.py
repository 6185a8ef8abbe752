"""The client against a real server that plays scripted bytes: S7, S9, S12, and what different endpoints take."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agents import connection, patience
from agents import model as client
from agents.errors import ContextTooLong, ModelFault, ModelRejected, ModelUnavailable
from agents.messages import Assistant, System, ToolCall, ToolResult, Usage, User
from agents.meter import Meter
from agents.model import ModelInfo, OpenAIModel, Reply
from agents.patience import Patience
from agents.tools.arguments import schemas
from tests.agents.conftest import Answer, Endpoint

HELLO = [System(text="You are terse."), User(text="hello")]


def event(delta: dict[str, object], *, finish: str | None = None, usage: tuple[int, int] | None = None) -> bytes:
    body: dict[str, object] = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


TEXT = event({"content": "hi"}, usage=(20, 1))
STOP = event({}, finish="stop", usage=(20, 2))
DONE = b"data: [DONE]\n\n"
HALF_CALL = event({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write", "arguments": '{"path":"x","con'}}]}, usage=(20, 7))
GOOD = Answer(body=[TEXT, STOP, DONE])


def refusal(status: int, message: str = "no", **headers: str) -> Answer:
    body = json.dumps({"error": {"message": message, "code": status}}).encode()
    return Answer(
        status=status,
        body=[body],
        content_type="application/json",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest_asyncio.fixture
async def model(endpoint: Endpoint) -> AsyncIterator[OpenAIModel]:
    async with OpenAIModel(endpoint.url, model="m", patience=Patience(idle_s=5.0)) as opened:
        yield opened


async def ask(model: OpenAIModel, *, meter: Meter | None = None, max_tokens: int | None = None, messages: Any = HELLO) -> Reply:
    return await model.reply(messages, schemas(), session="task-7", meter=meter or Meter(), max_tokens=max_tokens)


async def test_a_reply_with_its_usage_times_and_meter(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [GOOD]
    meter = Meter()
    reply = await ask(model, meter=meter)
    assert reply.message == Assistant(text="hi", finish_reason="stop", usage=Usage(input_tokens=20, output_tokens=2))
    assert reply.ttft_s is not None
    assert reply.ttft_s > 0
    assert (reply.decode_s, reply.chunks) == (0.0, 2)
    assert (meter.input_tokens, meter.output_tokens, meter.streaming, meter.live_text) == (20, 2, False, "")


async def test_the_request_carries_the_session_and_asks_for_usage_with_every_chunk(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [GOOD]
    await ask(model, max_tokens=77)
    asked = endpoint.asked[0]
    assert (asked.method, asked.path, asked.headers["x-session-id"]) == ("POST", "/v1/chat/completions", "task-7")
    assert asked.body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert (asked.body["model"], asked.body["stream"], asked.body["max_tokens"]) == ("m", True, 77)
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == [
        "read",
        "list",
        "search",
        "edit",
        "write",
        "run",
        "note",
        "submit",
    ]


async def test_a_conversation_is_written_as_the_api_takes_it(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [GOOD]
    turn = Assistant(
        text="", reasoning="never sent back", tool_calls=(ToolCall(id="a", name="list", arguments="{}"),), finish_reason="tool_calls"
    )
    await ask(model, messages=[*HELLO, turn, ToolResult(call_id="a", name="list", text="x.py", ok=True)])
    assert endpoint.asked[0].body["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "list", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x.py"},
    ]


async def test_s07_endings_that_are_whole_are_taken(endpoint: Endpoint, model: OpenAIModel) -> None:
    for answer in (
        Answer(body=[TEXT, STOP]),  # no [DONE]
        Answer(body=[TEXT, STOP], ending="eof"),
        Answer(body=[TEXT, STOP], ending="reset"),
        Answer(body=[TEXT, STOP, DONE], ending="silence"),
        Answer(body=[TEXT, STOP[:-2]]),  # no blank line at the very end
    ):
        endpoint.answers = [answer]
        assert (await ask(model)).message.text == "hi"


@pytest.mark.parametrize("again", [b"", b": ka\n\n", b'data: {"choices":[]}\n\n', TEXT])
async def test_s07_the_rest_after_the_finish_reason_is_waited_for_a_short_time_in_all(endpoint: Endpoint, again: bytes) -> None:
    endpoint.answers = [Answer(body=[TEXT, STOP], again=again, every_s=0.02, ending="silence")]
    async with OpenAIModel(endpoint.url, model="m", patience=Patience(grace_s=0.1)) as model, asyncio.timeout(5):
        assert (await ask(model)).message.text.startswith("hi")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=[TEXT, HALF_CALL]),
        Answer(body=[TEXT, HALF_CALL], ending="eof"),
        Answer(body=[TEXT, HALF_CALL], ending="reset"),
        Answer(body=[TEXT, b'data: {"error": {"message": "gone", "code": 504}}\n\n', DONE]),
        Answer(body=[TEXT, b'data: {"error": {"message": "gone", "code": 504}}\n\n'], ending="silence"),
        Answer(body=[TEXT, DONE]),
        Answer(body=[DONE]),
        Answer(body=[]),
        Answer(body=[b"<html>welcome</html>"], content_type="text/html"),
        Answer(body=[b"<html>welcome</html>"]),
        Answer(body=[b'{"error": {"message": "overloaded"}}'], content_type="application/json"),
        Answer(body=[b": ping\n\n"], ending="eof"),
        refusal(500),
    ],
)
async def test_s07_broken_streams_are_faults(endpoint: Endpoint, model: OpenAIModel, answer: Answer) -> None:
    endpoint.answers = [answer]
    meter = Meter()
    with pytest.raises(ModelFault):
        await ask(model, meter=meter)
    assert (meter.streaming, meter.live_text) == (False, "")
    endpoint.answers = [GOOD]
    assert (await ask(model)).message.text == "hi"


SLOW = Patience(wordless_s=30.0, idle_s=30.0, unserved_s=30.0)


async def given_up(endpoint: Endpoint, limits: Patience, answer: Answer, match: str, *, unserved: bool = False) -> None:
    endpoint.answers = [answer]
    async with OpenAIModel(endpoint.url, model="m", patience=limits, unserved=lambda: unserved) as model, asyncio.timeout(5):
        with pytest.raises(ModelFault, match=match):
            await ask(model)


@pytest.mark.parametrize("again", [b"", b"x", b"data: "])
async def test_s07_a_stream_that_goes_silent_is_given_up_after_the_idle_time(endpoint: Endpoint, again: bytes) -> None:
    """A byte now and then that never makes a line is no life."""
    answer = Answer(body=[TEXT], again=again, every_s=0.02, ending="silence")
    await given_up(endpoint, replace(SLOW, idle_s=0.2), answer, "silent for 0.2 s")


@pytest.mark.parametrize("body", [[], [TEXT], [b": ping\n\n"]])
async def test_s06_comments_keep_a_stream_alive_but_not_without_words_for_ever(endpoint: Endpoint, body: list[bytes]) -> None:
    answer = Answer(body=body, again=b": ka\n\n", every_s=0.02, ending="silence")
    await given_up(endpoint, replace(SLOW, idle_s=0.3, wordless_s=0.5), answer, "no word of the model for 0.5 s")


async def test_s12_the_first_word_may_take_longer_than_a_silence_later(endpoint: Endpoint) -> None:
    endpoint.answers = [Answer(body=[], again=GOOD.body[0] + STOP + DONE, every_s=0.3)]
    async with OpenAIModel(endpoint.url, model="m", patience=replace(SLOW, idle_s=0.1)) as model:
        assert (await ask(model)).message.text == "hi"


async def test_an_engine_that_works_on_nothing_is_not_waited_for(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LOOK_S", 0.02)
    for body in ([], [b": ka\n\n"], [event({"role": "assistant", "content": ""})]):
        answer = Answer(body=body, ending="silence")
        await given_up(endpoint, replace(SLOW, unserved_s=0.1), answer, "works on nothing", unserved=True)
    await given_up(endpoint, replace(SLOW, unserved_s=0.1, wordless_s=0.3), Answer(ending="silence"), "no word")
    await given_up(endpoint, replace(SLOW, unserved_s=0.1, idle_s=0.3), Answer(body=[TEXT], ending="silence"), "silent", unserved=True)


async def test_an_engine_that_is_idle_now_and_then_is_waited_for(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LOOK_S", 0.02)
    endpoint.answers = [Answer(ending="silence")]
    says = itertools.cycle([True, True, True, True, False])
    hasty = replace(SLOW, unserved_s=0.01, wordless_s=0.5)
    async with OpenAIModel(endpoint.url, model="m", patience=hasty, unserved=lambda: next(says)) as model:
        with pytest.raises(ModelFault, match="no word"):
            await ask(model)


@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
async def test_a_page_in_place_of_a_stream_is_read_in_part(endpoint: Endpoint, content_type: str) -> None:
    answer = Answer(content_type=content_type, again=b"x" * 60_000, every_s=0.0, ending="silence")
    await given_up(endpoint, SLOW, answer, "not with a stream")


async def test_an_answer_without_end_is_given_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "STREAM_BYTES", 1 << 20)
    empty = event({}) * 500
    await given_up(endpoint, SLOW, Answer(again=empty, every_s=0.0, ending="silence"), "longer than 1 MiB")
    text = event({"content": "x" * 50_000})
    endpoint.answers = [Answer(again=text, every_s=0.0, ending="silence")]
    async with OpenAIModel(endpoint.url, model="m", patience=SLOW) as model:
        with pytest.raises(ModelFault, match="more than was asked for"):
            await ask(model, max_tokens=100)


async def test_a_head_that_never_ends_is_not_waited_for(endpoint: Endpoint) -> None:
    endpoint.answers = [Answer(ending="slow-head")]
    async with OpenAIModel(endpoint.url, model="m", patience=replace(SLOW, wordless_s=0.3)) as model, asyncio.timeout(5):
        with pytest.raises(ModelUnavailable, match=r"within 0\.3 s"):
            await ask(model)


@pytest.mark.parametrize("every_s", [0.0, 0.02])
async def test_a_refusal_is_taken_from_its_beginning(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, every_s: float) -> None:
    monkeypatch.setattr(connection, "REFUSAL_S", 0.2)
    endpoint.answers = [Answer(status=400, body=[b"your fault, "], again=b"x" * 1_000, every_s=every_s, ending="silence")]
    async with OpenAIModel(endpoint.url, model="m", patience=SLOW) as model, asyncio.timeout(5):
        with pytest.raises(ModelRejected, match="your fault"):
            await ask(model)


async def test_nobody_is_sent_elsewhere_with_a_conversation(endpoint: Endpoint, model: OpenAIModel) -> None:
    for target in ("/v1/chat/completions", "http://127.0.0.1:9/v1/chat/completions"):
        endpoint.asked.clear()
        endpoint.answers = [Answer(status=307, headers={"location": target}, again=b"x" * 1_000, every_s=0.0, ending="silence")]
        with pytest.raises(ModelRejected, match=target):
            await ask(model)
        assert len(endpoint.asked) == 1


async def test_usage_that_cannot_be_is_noted_once(endpoint: Endpoint, model: OpenAIModel, caplog: pytest.LogCaptureFixture) -> None:
    endpoint.answers = [Answer(body=[event({"content": "hi"}, usage=(2**63 - 1, 2**63 - 1)), STOP.replace(b": 2", b": -2"), DONE])]
    meter = Meter()
    for _ in range(2):
        assert (await ask(model, meter=meter)).message.usage is None
    assert (meter.input_tokens, meter.output_tokens) == (0, 0)
    assert [record.message for record in caplog.records if "token counts" in record.message] == [
        f"{endpoint.url} reports token counts that cannot be; they are taken as not reported"
    ]


async def test_the_tokens_of_a_stream_that_died_stay_on_the_meter(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [Answer(body=[TEXT, HALF_CALL], ending="eof"), GOOD]
    meter = Meter()
    with pytest.raises(ModelFault):
        await ask(model, meter=meter)
    assert (meter.input_tokens, meter.output_tokens) == (20, 7)
    await ask(model, meter=meter)
    assert (meter.input_tokens, meter.output_tokens) == (40, 9)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 502, 503, 504, 529])
async def test_s12_a_busy_server_is_unavailable_with_its_wish(endpoint: Endpoint, model: OpenAIModel, status: int) -> None:
    endpoint.answers = [refusal(status, "come back", retry_after="7")]
    with pytest.raises(ModelUnavailable, match="come back") as raised:
        await ask(model)
    assert raised.value.retry_after_s == 7.0
    assert len(endpoint.asked) == 1  # nobody retries behind our back


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 422])
async def test_s12_what_would_not_help_is_rejected(endpoint: Endpoint, model: OpenAIModel, status: int) -> None:
    endpoint.answers = [refusal(status, "your fault")]
    with pytest.raises(ModelRejected, match="your fault"):
        await ask(model)
    assert len(endpoint.asked) == 1


async def test_nobody_listening_is_unavailable() -> None:
    async with OpenAIModel("http://127.0.0.1:9/v1", model="m") as model:
        with pytest.raises(ModelUnavailable, match=r"connection refused at http://127\.0\.0\.1:9$"):
            await ask(model)


async def test_a_kept_connection_that_the_server_had_closed_is_replaced_at_once(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [Answer(ending="hang-up"), GOOD]
    assert (await ask(model)).message.text == "hi"
    assert endpoint.connections >= 2


VLLM = "This model's maximum context length is 8192 tokens. However, you requested 2048 output tokens and your prompt contains at least 6145 input tokens, for a total of at least 8193 tokens."
OLDER = (
    "This model's maximum context length is 8192 tokens. However, you requested 8193 tokens (6145 in the messages, 2048 in the completion)."
)
SGLANG = "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 8193 tokens: 6145 tokens from the input messages and 2048 tokens for the completion."
LLAMA = "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"


@pytest.mark.parametrize(
    ("body", "prompt_tokens"),
    [
        ({"error": {"message": VLLM, "code": 400}}, 6145),
        ({"object": "error", "message": OLDER, "code": 400}, 6145),
        ({"error": {"message": SGLANG}}, 6145),
        ({"error": {"message": LLAMA}}, 9000),
        ({"error": {"code": 400, "message": "exceeds the available context size", "n_prompt_tokens": 9000, "n_ctx": 8192}}, 9000),
    ],
)
async def test_s09_a_context_refusal_is_told_by_its_numbers(
    endpoint: Endpoint, model: OpenAIModel, body: object, prompt_tokens: int
) -> None:
    endpoint.answers = [Answer(status=400, body=[json.dumps(body).encode()], content_type="application/json")]
    with pytest.raises(ContextTooLong) as raised:
        await ask(model, max_tokens=2048)
    assert (raised.value.limit_tokens, raised.value.prompt_tokens) == (8192, prompt_tokens)


async def test_s09_a_context_refusal_without_numbers_is_still_one(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [refusal(400, "the input length exceeds the context length")]
    with pytest.raises(ContextTooLong) as raised:
        await ask(model)
    assert raised.value.limit_tokens is None


async def test_an_endpoint_that_takes_no_continuous_usage_is_asked_without_from_then_on(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [refusal(400, "Unrecognized field: stream_options.continuous_usage_stats"), GOOD]
    await ask(model)
    await ask(model)
    assert [asked.body["stream_options"] for asked in endpoint.asked[1:]] == [{"include_usage": True}] * 2


async def test_an_endpoint_that_takes_no_stream_options_is_asked_without(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [refusal(400, "unknown: continuous_usage_stats"), refusal(422, "unknown: stream_options"), GOOD]
    await ask(model)
    assert "stream_options" not in endpoint.asked[-1].body


async def test_an_endpoint_that_wants_another_name_for_the_limit_gets_it(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), GOOD]
    await ask(model, max_tokens=50)
    assert endpoint.asked[-1].body["max_completion_tokens"] == 50
    assert "max_tokens" not in endpoint.asked[-1].body


async def test_without_a_name_the_first_listed_model_is_asked(endpoint: Endpoint) -> None:
    endpoint.answers = [GOOD]
    async with OpenAIModel(endpoint.url) as model:
        await ask(model)
    assert endpoint.asked[0].body["model"] == "m"


async def test_the_endpoint_tells_model_and_window(endpoint: Endpoint) -> None:
    async with OpenAIModel(endpoint.url.removesuffix("/v1")) as model:
        assert await model.info() == ModelInfo(model="m", max_model_len=8192)
        endpoint.models = [{"id": "hosted", "object": "model"}]
        assert await model.info() == ModelInfo(model="hosted", max_model_len=None)
        for odd in (-1, 0, 10**30):
            endpoint.models = [{"id": "odd", "max_model_len": odd}]
            assert await model.info() == ModelInfo(model="odd", max_model_len=None)
        endpoint.models = []
        with pytest.raises(ModelRejected, match="no model"):
            await model.info()
    assert endpoint.connections == 1


async def test_a_named_model_has_its_own_window(endpoint: Endpoint) -> None:
    endpoint.models = [{"id": "first", "max_model_len": 1024}, {"id": "second", "max_model_len": 4096}]
    async with OpenAIModel(endpoint.url, model="second") as model:
        assert await model.info() == ModelInfo(model="second", max_model_len=4096)


async def test_a_model_that_is_not_served_is_rejected_with_those_that_are(endpoint: Endpoint) -> None:
    async with OpenAIModel(endpoint.url, model="other") as model:
        with pytest.raises(ModelRejected, match="serves m, not other"):
            await model.info()
        endpoint.models = [{"id": f"m{number}"} for number in range(400)]
        with pytest.raises(ModelRejected, match=r"serves m0, .*m7 and 392 more, not other"):
            await model.info()


@pytest.mark.parametrize(
    "models",
    [
        [{"id": "x" * 1_000}],
        [{"id": 7}],
        [{"id": "m", "padding": "x" * (9 << 20)}],
    ],
)
async def test_a_list_of_models_that_cannot_be_meant_is_rejected(endpoint: Endpoint, models: list[dict[str, object]]) -> None:
    endpoint.models = models
    async with OpenAIModel(endpoint.url) as model:
        with pytest.raises(ModelRejected, match="list of models"):
            await model.info()


async def test_an_endpoint_that_serves_another_model_by_now_is_asked_for_that(endpoint: Endpoint) -> None:
    endpoint.answers = [GOOD, refusal(404, "The model `m` does not exist."), GOOD]
    async with OpenAIModel(endpoint.url) as model:
        await ask(model)
        endpoint.models = [{"id": "next"}]
        await ask(model)
    assert [asked.body["model"] for asked in endpoint.asked] == ["m", "m", "next"]


async def test_a_client_follows_its_endpoint_to_another_address(endpoint: Endpoint) -> None:
    endpoint.answers = [GOOD]
    async with OpenAIModel("http://127.0.0.1:9/v1", model="m") as model:
        with pytest.raises(ModelUnavailable):
            await ask(model)
        model.move_to(endpoint.url)
        assert (await ask(model)).message.text == "hi"


async def test_a_request_to_the_address_that_the_endpoint_has_left_ends_as_an_outage(endpoint: Endpoint) -> None:
    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()  # never an answer
        writer.close()

    asked = asyncio.Event()
    async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with OpenAIModel(f"http://{host}:{port}/v1", model="m") as model:
            waiting = asyncio.ensure_future(ask(model))
            await asked.wait()
            model.move_to(endpoint.url)
            await model.info()
            with pytest.raises(ModelUnavailable):
                await waiting


async def test_a_named_model_is_never_replaced_by_another(endpoint: Endpoint) -> None:
    endpoint.answers = [refusal(404, "The model `m` does not exist.")]
    endpoint.models = [{"id": "next"}]
    async with OpenAIModel(endpoint.url, model="m") as model:
        with pytest.raises(ModelRejected, match="does not exist"):
            await ask(model)


async def test_an_endpoint_that_nobody_serves_is_unavailable() -> None:
    async with OpenAIModel("http://127.0.0.1:9") as model:
        with pytest.raises(ModelUnavailable):
            await model.info()


async def test_an_answer_opens_the_gate(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [GOOD]
    model.gate.refused("down")
    await ask(model)
    assert model.gate.wait_s() == 0.0


async def test_a_cancelled_request_leaves_the_client_usable(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [Answer(body=[TEXT], ending="silence")]
    meter = Meter()
    task = asyncio.ensure_future(ask(model, meter=meter))
    while not meter.streaming:  # noqa: ASYNC110 - a meter is read, it does not tell
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (meter.streaming, meter.output_tokens) == (False, 1)
    endpoint.answers = [GOOD]
    assert (await ask(model)).message.text == "hi"


async def test_whole_replies_reuse_their_connection(endpoint: Endpoint, model: OpenAIModel) -> None:
    endpoint.answers = [GOOD]
    for _ in range(5):
        await ask(model)
    assert endpoint.connections == 1


def test_importing_the_client_does_not_import_the_sdk() -> None:
    program = "import sys, agents.model, agents.scripted; print(sorted({'openai', 'aiohttp', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
