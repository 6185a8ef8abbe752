from __future__ import annotations

import pytest

from agents.address import api_base, metrics_url


@pytest.mark.parametrize(
    ("given", "base", "metrics"),
    [
        ("http://h:8000", "http://h:8000/v1", "http://h:8000/metrics"),
        ("http://h:8000/", "http://h:8000/v1", "http://h:8000/metrics"),
        ("http://h:8000/v1", "http://h:8000/v1", "http://h:8000/metrics"),
        ("http://h:8000/v1//", "http://h:8000/v1", "http://h:8000/metrics"),
        ("https://h/gateway/v1/", "https://h/gateway/v1", "https://h/gateway/metrics"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai", "https://h/v1beta/openai/metrics"),
        ("HTTP://[::1]:8000", "http://[::1]:8000/v1", "http://[::1]:8000/metrics"),
        ("http://bücher.example/v1", "http://bücher.example/v1", "http://bücher.example/metrics"),
    ],
)
def test_an_endpoint_may_be_written_in_all_the_usual_ways(given: str, base: str, metrics: str) -> None:
    assert api_base(given) == base
    assert api_base(base) == base
    assert metrics_url(base) == metrics


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("http://localhost:abc/v1", "[Pp]ort"),
        ("http://localhost:99999/v1", "[Pp]ort"),
        ("http://localhost:0/v1", "port 0"),
        ("http://[::1/v1", "IPv6"),
        ("http:///v1", "no host"),
        ("localhost:8000", "http://"),
        ("ftp://h/v1", "http://"),
        ("http://local host/v1", "blank"),
        ("http://h\n/v1", "control character"),
        (f"http://{'a' * 70}/v1", "cannot be a host"),
        ("http://a..b/v1", "cannot be a host"),
        ("http://me:secret@h/v1", "password"),
        ("http://h/v1?key=1", "query"),
        ("", "http://"),
    ],
)
def test_a_url_to_which_no_request_could_go_is_refused_with_the_reason(given: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        api_base(given)
