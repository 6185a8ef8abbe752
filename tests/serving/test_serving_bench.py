import json
import socket
from pathlib import Path

import msgspec
import pytest

from orchestrator.serving.bench import BenchOptions, run_bench


def options(url: str, **fields) -> BenchOptions:
    return BenchOptions(
        **{"url": f"{url}/v1", "input_tokens": 64, "output_tokens": 32, "concurrency": 8, "requests": 16, "repeats": 2, **fields}
    )


async def test_client_and_server_count_the_same_tokens(start_engine, fast_profile):
    url = start_engine("--profile", fast_profile)
    result = await run_bench(options(url))
    assert (result.requests, result.succeeded, result.failed, result.failures) == (32, 32, 0, {})
    assert result.output_tokens == result.server_output_tokens == 32 * 32
    assert (result.client_gap, result.preemptions, result.acceptance_length) == (0.0, 0, None)
    assert result.prefix_cache_hit_rate == 0.0, "two prompts had the same beginning"
    assert result.fingerprint == "simulated-fast-seed0"
    assert result.success_share() == 1.0
    assert len(result.repeats) == 2
    assert result.spread is not None


async def test_latencies_fit_the_engine_that_was_simulated(start_engine, tmp_path: Path):
    profile = tmp_path / "slow.toml"
    profile.write_text('name = "slow"\ndecode_step_ms = [[1, 10.0]]\nmax_model_len = 4096\nnum_gpu_blocks = 1024\n')
    result = await run_bench(options(start_engine("--profile", str(profile)), concurrency=4, requests=4, repeats=1))
    assert result.tpot_s.p50 == pytest.approx(0.010, rel=0.2)
    assert result.itl_s.p50 == pytest.approx(0.010, rel=0.2)
    assert result.e2el_s.p50 == pytest.approx(0.32, rel=0.2)
    assert result.output_tokens_per_s == pytest.approx(400, rel=0.2)
    assert result.spread is None


async def test_raw_records_are_written_one_line_a_request(start_engine, fast_profile, tmp_path: Path):
    out = tmp_path / "bench" / "deep"
    await run_bench(options(start_engine("--profile", fast_profile), out=out))
    assert sorted(path.name for path in out.iterdir()) == ["repeat-1.jsonl", "repeat-2.jsonl"]
    records = [json.loads(line) for line in (out / "repeat-2.jsonl").read_text().splitlines()]
    assert [record["index"] for record in records] == list(range(16))
    assert all(len(record["chunk_times_s"]) == record["output_tokens"] == 32 and record["input_tokens"] == 64 for record in records)


async def test_a_dead_endpoint_is_a_failed_result():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        result = await run_bench(options(f"http://127.0.0.1:{probe.getsockname()[1]}"))
    assert (result.requests, result.succeeded, result.failures) == (32, 0, {"unreachable": 32})
    assert result.success_share() == 0.0
    document = msgspec.to_builtins(result)
    assert document["output_tokens_per_s"] is None
    assert document["ttft_s"] == {"p50": None, "p95": None, "p99": None}


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("http-503", "http 503"),
        ("cut-stream", "stream cut"),
        ("no-finish-reason", "no finish reason"),
        ("error-in-stream", "error in the stream"),
        ("html-200", "no output"),
    ],
)
async def test_a_failed_request_is_counted_by_its_cause(start_engine, fast_profile, fault, cause):
    result = await run_bench(options(start_engine("--profile", fast_profile, "--fault", fault), repeats=1))
    assert (result.failed, result.failures) == (16, {cause: 16})
    assert (result.output_tokens, result.ttft_s.p50) == (None, None)


async def test_without_usage_the_tokens_are_unknown_not_counted_from_chunks(start_engine, fast_profile):
    result = await run_bench(options(start_engine("--profile", fast_profile, "--fault", "no-usage"), repeats=1))
    assert (result.succeeded, result.output_tokens, result.output_tokens_per_s, result.tpot_s.p50) == (16, None, None, None)
    assert result.server_output_tokens == 16 * 32
