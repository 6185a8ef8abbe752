"""The simulated engine over HTTP, in a process of its own."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from openai import AsyncOpenAI

from orchestrator.serving.prometheus import EngineMetrics, parse_metrics

TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
SCRIPT = """
task = "t1"
[[step]]
thinking = "Let me see what fails, äöü."
text = "Running it."
[[step.call]]
tool = "run"
arguments = { command = "python3 -m unittest", timeout_s = 5 }
[[step.call]]
tool = "note"
arguments = { text = "größer" }
[[step]]
expect = "FAILED"
text = "It failed."
"""


@pytest.fixture
def scripts(tmp_path: Path) -> str:
    (tmp_path / "t1.toml").write_text(SCRIPT)
    return str(tmp_path)


async def post(url: str, path: str, body: dict, **headers: str) -> tuple[int, dict]:
    async with aiohttp.ClientSession() as session, session.post(f"{url}{path}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def metrics(url: str) -> tuple[EngineMetrics, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        text = await response.text()
        return parse_metrics(text), text


async def events(response: aiohttp.ClientResponse) -> list[dict]:
    text = (await response.read()).decode()
    assert text.endswith("data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in text.splitlines() if line and line != "data: [DONE]"]


def chat(**fields) -> dict:
    return {"messages": [{"role": "user", "content": "do it"}], "tools": TOOLS, **fields}


async def test_every_answer_says_that_it_is_simulated(engine_url):
    async with aiohttp.ClientSession() as session:
        models = await (await session.get(f"{engine_url}/v1/models")).json()
        version = await (await session.get(f"{engine_url}/version")).json()
        assert (await session.get(f"{engine_url}/health")).status == 200
    assert models["data"][0]["id"] == "simulated/fast"
    assert models["data"][0]["max_model_len"] == 4096
    assert "simulated" in models["data"][0]["owned_by"]
    assert "simulated" in version["version"]
    _, answer = await post(engine_url, "/v1/completions", {"prompt": "x", "max_tokens": 1})
    assert answer["system_fingerprint"].startswith("simulated-")


async def test_a_scripted_step_streams_through_the_openai_sdk(start_engine, fast_profile, scripts):
    url = start_engine("--profile", fast_profile, "--script", scripts)
    thinking, text, calls, usages, finish = "", "", {}, [], None
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", default_headers={"X-Session-ID": "t1"}) as client:
        options = {"include_usage": True, "continuous_usage_stats": True}
        stream = await client.chat.completions.create(model="simulated/fast", stream=True, extra_body={"stream_options": options}, **chat())
        async for chunk in stream:
            usages.append(chunk.usage)
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                thinking += getattr(choice.delta, "reasoning", None) or ""
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, [call.id, call.function.name, ""])
                    known[2] += call.function.arguments or ""
    assert (thinking, text, finish) == ("Let me see what fails, äöü.", "Running it.", "tool_calls")
    assert [(name, json.loads(arguments)) for _, name, arguments in calls.values()] == [
        ("run", {"command": "python3 -m unittest", "timeout_s": 5}),
        ("note", {"text": "größer"}),
    ]
    assert len({call_id for call_id, _, _ in calls.values()}) == 2
    assert [usage.completion_tokens for usage in usages] == [*range(len(usages) - 1), len(usages) - 2]
    assert usages[-1].prompt_tokens_details.cached_tokens == 0
    assert (await metrics(url))[0].output_tokens == usages[-1].completion_tokens


async def test_the_step_is_chosen_by_the_history_alone(start_engine, fast_profile, scripts):
    url = start_engine("--profile", fast_profile, "--script", scripts)
    history = [
        {"role": "user", "content": "do it"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "FAILED (errors=1)"},
    ]
    _, second = await post(url, "/v1/chat/completions", chat(messages=history), **{"X-Session-ID": "t1"})
    assert second["choices"][0]["message"]["content"] == "It failed."
    _, again = await post(url, "/v1/chat/completions", chat(messages=history), **{"X-Session-ID": "t1"})
    assert again["choices"] == second["choices"]
    _, ended = await post(url, "/v1/chat/completions", chat(messages=[*history, history[1], history[2]]), **{"X-Session-ID": "t1"})
    assert "ended after 2 replies" in ended["choices"][0]["message"]["content"]
    history[2]["content"] = "OK"
    _, misfit = await post(url, "/v1/chat/completions", chat(messages=history), **{"X-Session-ID": "t1"})
    assert "does not fit" in misfit["choices"][0]["message"]["content"]
    for answer in (ended, misfit):
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert answer["choices"][0]["message"]["tool_calls"] == []


@pytest.mark.parametrize("headers", [{}, {"X-Session-ID": "nobody"}])
async def test_without_a_script_it_says_so_and_calls_nothing(engine_url, headers):
    _, answer = await post(engine_url, "/v1/chat/completions", chat(), **headers)
    choice = answer["choices"][0]
    assert "simulated engine" in choice["message"]["content"]
    assert "no script" in choice["message"]["content"]
    assert (choice["finish_reason"], choice["message"]["tool_calls"]) == ("stop", [])


async def test_a_reply_ends_at_max_tokens_with_length(start_engine, fast_profile, scripts):
    url = start_engine("--profile", fast_profile, "--script", scripts)
    _, cut = await post(url, "/v1/chat/completions", chat(max_tokens=3), **{"X-Session-ID": "t1"})
    assert cut["choices"][0]["finish_reason"] == "length"
    assert cut["usage"]["completion_tokens"] == 3
    _, filled = await post(url, "/v1/chat/completions", chat(max_completion_tokens=40, ignore_eos=True))
    assert filled["usage"]["completion_tokens"] == 40
    _, padded = await post(url, "/v1/chat/completions", chat(min_tokens=200, max_tokens=300))
    assert padded["usage"]["completion_tokens"] == 200


async def test_the_same_seed_gives_the_same_text_and_another_seed_another(start_engine, fast_profile):
    texts = []
    for seed in ("1", "1", "2"):
        url = start_engine("--profile", fast_profile, "--seed", seed)
        _, answer = await post(url, "/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 20, "ignore_eos": True})
        texts.append(answer["choices"][0]["text"])
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (
            "/v1/chat/completions",
            {"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]},
            404,
            "The model `gpt-9` does not exist.",
        ),
        ("/v1/chat/completions", {"messages": "x"}, 400, "$.messages"),
        ("/v1/chat/completions", {"messages": []}, 400, "empty"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}, 400, "at least 1"),
        ("/v1/completions", {"prompt": ["a", "b"]}, 400, "one prompt"),
        ("/v1/completions", {"prompt": []}, 400, "empty"),
        ("/v1/completions", {"prompt": "x", "stream_options": {"include_usage": True}}, 400, "stream=True"),
        ("/detokenize", {"tokens": [-1]}, 400, "vocabulary"),
        ("/v2/nothing", {}, 404, "Not Found"),
    ],
)
async def test_a_bad_request_gets_an_error_in_vllms_form(engine_url, path, body, status, words):
    got, answer = await post(engine_url, path, body)
    assert got == status == answer["error"]["code"]
    assert words in answer["error"]["message"]


async def test_a_request_beyond_the_window_is_refused_with_its_numbers(engine_url):
    status, answer = await post(engine_url, "/v1/completions", {"prompt": [1] * 4000, "max_tokens": 97})
    assert status == 400
    assert "maximum context length is 4096 tokens" in answer["error"]["message"]
    assert "requested 97 output tokens and your prompt contains at least 4000 input tokens" in answer["error"]["message"]
    status, _ = await post(engine_url, "/v1/completions", {"prompt": [1] * 4000, "max_tokens": 96})
    assert status == 200


async def test_tokenize_counts_as_usage_does_and_detokenize_gives_the_text_back(engine_url):
    text = "Ein Prüftext, der sich nicht glatt teilt."
    _, tokens = await post(engine_url, "/tokenize", {"prompt": text})
    _, back = await post(engine_url, "/detokenize", {"tokens": tokens["tokens"]})
    _, answer = await post(engine_url, "/v1/completions", {"prompt": text, "max_tokens": 1})
    assert back["prompt"] == text
    assert tokens["count"] == answer["usage"]["prompt_tokens"]


async def test_a_longer_conversation_finds_its_beginning_in_the_cache(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile)
    messages = [{"role": "system", "content": "a long system prompt " * 40}, {"role": "user", "content": "first"}]
    _, first = await post(url, "/v1/chat/completions", chat(messages=messages))
    messages += [{"role": "assistant", "content": first["choices"][0]["message"]["content"]}, {"role": "user", "content": "second"}]
    _, second = await post(url, "/v1/chat/completions", chat(messages=messages))
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert first["usage"]["prompt_tokens"] - 32 < cached < second["usage"]["prompt_tokens"]
    assert (await metrics(url))[0].prefix_hits == (await metrics(url))[0].cached_tokens == cached


async def test_speculation_puts_several_tokens_into_a_chunk_and_counts_them(start_engine, tmp_path):
    profile = tmp_path / "spec.toml"
    profile.write_text(
        'name = "spec"\ndecode_step_ms = [[1, 1.0]]\nacceptance_rates = [0.9, 0.8]\nmax_model_len = 4096\nnum_gpu_blocks = 1024\n'
    )
    url = start_engine("--profile", str(profile))
    body = {"prompt": "x", "max_tokens": 300, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/completions", json=body) as response:
        chunks = await events(response)
    assert chunks[-1]["usage"]["completion_tokens"] == 300
    assert len(chunks) - 1 < 150
    found, text = await metrics(url)
    assert found.output_tokens == 300
    assert 2.4 < 1 + found.accepted_tokens / found.drafts < 3.0
    assert 'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="simulated/spec",position="1"}' in text


async def test_a_stream_interval_thins_chunks_out_but_loses_no_token(start_engine, tmp_path):
    profile = tmp_path / "thin.toml"
    profile.write_text('name = "thin"\ndecode_step_ms = [[1, 1.0]]\nstream_interval = 10\nmax_model_len = 4096\nnum_gpu_blocks = 1024\n')
    url = start_engine("--profile", str(profile))
    body = {"prompt": "x", "max_tokens": 100, "stream": True, "stream_options": {"include_usage": True}}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/completions", json=body) as response:
        chunks = await events(response)
    assert len("".join(chunk["choices"][0]["text"] for chunk in chunks[:-1])) == 400
    assert len(chunks) - 1 <= 12


async def test_counters_stay_exact_when_clients_leave(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile)
    complete, seen = 0, []
    body = {"prompt": "x", "max_tokens": 3000, "ignore_eos": True, "stream": True}
    body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    async with aiohttp.ClientSession() as session:
        for stop_after in (1, 50):
            async with session.post(f"{url}/v1/completions", json=body) as response:
                for _ in range(2 * stop_after):  # a line and an empty line per chunk
                    line = await response.content.readline()
                    if line.startswith(b"data: "):
                        seen.append(json.loads(line[6:])["usage"]["completion_tokens"])
                response.close()
    for tokens in (5, 70):
        _, answer = await post(url, "/v1/completions", {"prompt": "y", "max_tokens": tokens})
        complete += answer["usage"]["completion_tokens"]
    async with asyncio.timeout(10):
        while (found := (await metrics(url)))[0].running:
            pass
    counted, text = found
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    labels = 'engine="0",model_name="simulated/fast"'
    assert float(values[f'vllm:request_success_total{{{labels},finished_reason="abort"}}']) == 2
    assert float(values[f"vllm:request_generation_tokens_sum{{{labels}}}"]) == counted.output_tokens
    left_unread = counted.output_tokens - complete - seen[0] - seen[-1]
    assert 0 <= left_unread < 1000, "a request went on after its client had left"
    assert counted.kv_cache_usage == 0
    assert (await metrics(url))[0].output_tokens == counted.output_tokens


async def test_a_port_in_use_is_refused_in_one_line(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile)
    argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--port", url.rpartition(":")[2]]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_end_of_the_parents_pipe_ends_the_engine(fast_profile):
    argv = [sys.executable, "-m", "orchestrator.serving.simulator", "--profile", fast_profile, "--parent-pipe"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stderr.readline().startswith("ready ")
        assert engine.poll() is None
        engine.stdin.close()
        assert engine.wait(10) == 0
