"""Each fault as a client meets it."""

import asyncio
import json
import time
from pathlib import Path

import aiohttp
import pytest

BODY = {"prompt": "x", "max_tokens": 20, "stream": True, "stream_options": {"include_usage": True}}


async def stream(url: str, path: str = "/v1/completions", body: dict | None = None, **headers: str) -> tuple[aiohttp.ClientResponse, str]:
    async with aiohttp.ClientSession() as session, session.post(f"{url}{path}", json=body or BODY, headers=headers) as response:
        return response, (await response.read()).decode()


def chunks(text: str) -> list[dict]:
    return [json.loads(line[6:]) for line in text.splitlines() if line and line != "data: [DONE]"]


async def test_cut_stream_ends_the_connection_in_the_middle(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile, "--fault", "cut-stream")
    with pytest.raises(aiohttp.ClientPayloadError):
        await stream(url)
    with pytest.raises(aiohttp.ClientPayloadError):
        await stream(url, body={**BODY, "stream": False, "stream_options": None})


async def test_no_finish_reason_ends_in_order_without_one(start_engine, fast_profile):
    _, text = await stream(start_engine("--profile", fast_profile, "--fault", "no-finish-reason"))
    assert text.endswith("data: [DONE]\n\n")
    assert {choice["finish_reason"] for chunk in chunks(text) for choice in chunk["choices"]} == {None}


async def test_error_in_stream_comes_after_some_output(start_engine, fast_profile):
    _, text = await stream(start_engine("--profile", fast_profile, "--fault", "error-in-stream"))
    found = chunks(text)
    assert len(found) > 2
    assert found[-1]["error"]["code"] == 500


async def test_no_usage_leaves_the_usage_out(start_engine, fast_profile):
    _, text = await stream(start_engine("--profile", fast_profile, "--fault", "no-usage"))
    assert all(chunk.get("usage") is None for chunk in chunks(text))
    assert text.endswith("data: [DONE]\n\n")


async def test_bad_tool_json_breaks_the_arguments(start_engine, fast_profile, tmp_path: Path):
    (tmp_path / "t.toml").write_text('task = "t"\n[[step]]\n[[step.call]]\ntool = "run"\narguments = { command = "ls" }\n')
    url = start_engine("--profile", fast_profile, "--script", str(tmp_path), "--fault", "bad-tool-json")
    _, text = await stream(url, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, **{"X-Session-ID": "t"})
    answer = json.loads(text)["choices"][0]
    assert answer["finish_reason"] == "tool_calls"
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer["message"]["tool_calls"][0]["function"]["arguments"])


LS_THEN_NOTE = """
task = "t"
[[step]]
text = "I look."
[[step.call]]
tool = "run"
arguments = { command = "ls" }
[[step]]
expect = "a.txt"
text = "I note."
[[step.call]]
tool = "note"
arguments = { text = "seen" }
"""


def replied(arguments: str, result: str, number: int) -> list[dict]:
    """A reply of the model in a client's history, and what its call gave."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": arguments}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"c{number}", "content": result}]


@pytest.mark.parametrize("broken", ['{"comma', '{"invalid_arguments": "{\\"comma"}', "[]", '{"a":' + "[" * 5_000])
async def test_a_step_whose_arguments_could_not_be_read_is_offered_again(start_engine, fast_profile, tmp_path: Path, broken: str):
    (tmp_path / "t.toml").write_text(LS_THEN_NOTE)
    url = start_engine("--profile", fast_profile, "--script", str(tmp_path))
    refused, done = replied(broken, "The arguments are not valid JSON", 1), replied('{"command": "ls"}', "a.txt", 2)
    for history, says in (
        ([], "I look."),
        (refused, "I look."),
        ([*refused, *refused], "I look."),
        (done, "I note."),
        ([*done, *refused], "I note."),
        ([*refused, *done, *refused], "I note."),
        ([*done, *done], "This is a simulated engine."),
    ):
        body = {"messages": [{"role": "user", "content": "x"}, *history]}
        _, text = await stream(url, "/v1/chat/completions", body, **{"X-Session-ID": "t"})
        assert json.loads(text)["choices"][0]["message"]["content"].startswith(says)


async def test_replies_without_calls_count_as_steps(start_engine, fast_profile, tmp_path: Path):
    (tmp_path / "t.toml").write_text('task = "t"\n[[step]]\ntext = "one"\n[[step]]\ntext = "two"\n')
    url = start_engine("--profile", fast_profile, "--script", str(tmp_path))
    for said in ({"content": "one"}, {"content": "one", "tool_calls": None}, {"content": "one", "tool_calls": []}):
        body = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", **said}]}
        _, text = await stream(url, "/v1/chat/completions", body, **{"X-Session-ID": "t"})
        assert json.loads(text)["choices"][0]["message"]["content"] == "two"


async def test_html_200_is_no_json(start_engine, fast_profile):
    response, text = await stream(start_engine("--profile", fast_profile, "--fault", "html-200"))
    assert (response.status, response.content_type) == (200, "text/html")
    assert text.startswith("<html>")


@pytest.mark.parametrize(("fault", "status", "retry_after"), [("http-503", 503, None), ("http-429=2", 429, "2")])
async def test_http_faults_have_their_status_and_wish(start_engine, fast_profile, fault, status, retry_after):
    response, text = await stream(start_engine("--profile", fast_profile, "--fault", fault))
    assert (response.status, response.headers.get("Retry-After")) == (status, retry_after)
    assert json.loads(text)["error"]["code"] == status


async def test_slow_start_delays_the_output(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile, "--fault", "slow-start=0.3")
    began = time.monotonic()
    await stream(url)
    assert time.monotonic() - began > 0.3


async def test_hang_sends_a_status_and_nothing_more(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile, "--fault", "hang")
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/completions", json=BODY) as response:
        assert response.status == 200
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await response.content.read(1)


async def test_a_client_that_leaves_before_a_slow_start_is_over_costs_nothing(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile, "--fault", "slow-start=0.2")
    async with aiohttp.ClientSession() as session:
        (await session.post(f"{url}/v1/completions", json=BODY)).close()
    _, text = await stream(url)
    assert chunks(text)[-1]["usage"]["completion_tokens"] == 20
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        assert 'vllm:generation_tokens_total{engine="0",model_name="simulated/fast"} 20.0' in await response.text()
