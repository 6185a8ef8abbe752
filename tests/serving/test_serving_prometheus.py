import pytest

from orchestrator.serving.prometheus import EngineMetrics, acceptance_length, difference, parse_metrics, prefix_hit_rate

TEXT = """\
# HELP vllm:generation_tokens Number of generation tokens processed.
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1.0e+03
vllm:generation_tokens_total{engine="1",model_name="m"} 24.0
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_waiting 2
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="100",engine="0"} 1.0
vllm:prefix_cache_hits_total{engine="0"} NaN
vllm:num_preemptions_total{engine="0"
process_cpu_seconds_total 12.0
"""


def test_samples_of_several_engines_are_added_up():
    found = parse_metrics(TEXT)
    assert (found.output_tokens, found.running, found.waiting, found.kv_cache_usage) == (1024, 3, 2, 0.5)


def test_what_is_missing_torn_or_not_a_number_is_unknown():
    found = parse_metrics(TEXT)
    assert (found.prompt_tokens, found.prefix_hits, found.preemptions, found.drafts) == (None, None, None, None)


def test_the_metrics_of_another_server_give_nothing():
    assert parse_metrics("<html>not metrics</html>\nllamacpp:tokens_predicted_total 5\n") == EngineMetrics()


@pytest.mark.parametrize("value", ["-1", "1e300", "9.1e15", "inf", "nan", "1_000x", ""])
def test_a_number_that_no_engine_can_mean_is_unknown(value: str):
    lines = (f"{name} {value}\n" for name in ("vllm:generation_tokens_total", "vllm:kv_cache_usage_perc"))
    assert parse_metrics("".join(lines)) == EngineMetrics()


def test_acceptance_length_is_one_plus_accepted_per_round():
    before, after = EngineMetrics(drafts=100, accepted_tokens=100), EngineMetrics(drafts=300, accepted_tokens=480)
    assert acceptance_length(before, after) == 2.9
    assert acceptance_length(before, before) is None
    assert acceptance_length(EngineMetrics(), after) is None


def test_hit_rate_is_over_the_interval_only():
    before, after = EngineMetrics(prefix_queries=1000, prefix_hits=0), EngineMetrics(prefix_queries=1400, prefix_hits=100)
    assert prefix_hit_rate(before, after) == 0.25
    assert prefix_hit_rate(after, after) is None


def test_a_counter_that_fell_has_no_difference():
    assert difference(500, 20) is None
    assert difference(20, 500) == 480
