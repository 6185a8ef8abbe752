from orchestrator.serving.latency import e2el_s, itl_s, percentile, percentiles, tpot_s, ttft_s

CHUNKS_S = [10.5, 10.75, 11.25]


def test_percentile_is_the_nearest_rank():
    values = [15.0, 20.0, 35.0, 40.0, 50.0]
    assert [percentile(values, q) for q in (0, 5, 30, 40, 50, 100)] == [15.0, 15.0, 20.0, 20.0, 35.0, 50.0]


def test_percentiles_of_nothing_are_unknown_not_zero():
    assert percentile([], 50) is None
    assert percentiles([]).p99 is None


def test_percentiles_do_not_need_sorted_values():
    found = percentiles([float(value) for value in range(100, 0, -1)])
    assert (found.p50, found.p95, found.p99) == (50.0, 95.0, 99.0)


def test_latencies_of_one_request_computed_by_hand():
    assert ttft_s(10.0, CHUNKS_S) == 0.5
    assert e2el_s(10.0, CHUNKS_S) == 1.25
    assert itl_s(CHUNKS_S) == [0.25, 0.5]
    assert tpot_s(10.0, CHUNKS_S, 4) == 0.25  # (1.25 - 0.5) / 3, although there were three chunks


def test_time_per_further_token_is_undefined_for_one_token_and_without_a_count():
    assert tpot_s(10.0, CHUNKS_S, 1) is None
    assert tpot_s(10.0, CHUNKS_S, None) is None


def test_a_request_without_output_has_no_latency():
    assert (ttft_s(1.0, []), e2el_s(1.0, []), tpot_s(1.0, [], 5), itl_s([])) == (None, None, None, [])
