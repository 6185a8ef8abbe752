"""The event-stream decoder. S6: legal streams that naive parsers reject."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import sse
from agents.errors import ModelFault
from agents.sse import EventStream


def decoded(*chunks: bytes) -> list[bytes]:
    stream = EventStream()
    return [event for chunk in chunks for event in stream.feed(chunk)] + stream.close()


LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
PAYLOADS = st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20), min_size=1, max_size=3)
NOISE = st.sampled_from([b"", b": keep-alive", b":", b"event: x", b"id: 7", b"retry: 10", b"unknown"])


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A legal stream and the data of its events."""
    out, events = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])), []
    for _ in range(draw(st.integers(0, 6))):
        end = draw(LINE_ENDS)
        lines = [line.encode() for line in draw(PAYLOADS)]
        noise = draw(NOISE)
        out += noise + end if noise else b""
        space = b" " if any(line.startswith(b" ") for line in lines) else draw(st.sampled_from([b" ", b""]))
        out += b"".join(b"data:" + space + line + end for line in lines) + end
        events.append(b"\n".join(lines))
    return out, events


@given(streams(), st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_events(stream: tuple[bytes, list[bytes]], cuts: list[int]) -> None:
    data, events = stream
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert decoded(*(data[low:high] for low, high in itertools.pairwise(edges))) == events
    assert decoded(data) == events
    assert decoded(*(bytes([byte]) for byte in data)) == events


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_rubbish_never_raises_and_splits_do_not_matter(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert decoded(*(data[low:high] for low, high in itertools.pairwise(edges))) == decoded(data)


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b": keep-alive\n\ndata: 1\n\n: keep-alive\n\ndata: 2\n\n", [b"1", b"2"]),
        (b":\n\n:\n\ndata:{}\n\n", [b"{}"]),
        (b"event: message\nid: 1\nretry: 5\ndata: 1\n\n", [b"1"]),
        (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"]),
        (b"data: 1\r\rdata: 2\r\r", [b"1", b"2"]),
        (b"data: 1\n\ndata: 2", [b"1", b"2"]),
        (b"data: 1\n\ndata: 2\n", [b"1", b"2"]),
        (b"data\n\n", [b""]),
        (b"data:  two spaces\n\n", [b" two spaces"]),
        (b"\n\n\n", []),
        (b"<html>no stream</html>", []),
    ],
)
def test_s06_legal_streams_are_read_by_the_rules(data: bytes, events: list[bytes]) -> None:
    assert decoded(data) == events


def test_s06_an_event_ended_by_cr_is_not_kept_back() -> None:
    stream = EventStream()
    assert stream.feed(b"data: 1\r\r") == [b"1"]
    assert stream.feed(b"\ndata: 2\r\n\r") == [b"2"]
    assert stream.feed(b"\n") == []


def test_s06_a_large_event_in_many_pieces_costs_time_in_proportion_to_its_size() -> None:
    stream, piece = EventStream(), b"x" * 512
    began = time.process_time()
    assert stream.feed(b"data: ") == []
    for _ in range(8_000):  # 4 MB
        assert stream.feed(piece) == []
    assert [len(event) for event in stream.feed(b"\n\n")] == [8_000 * 512]
    assert time.process_time() - began < 1.0  # joining at every piece moves 16 GB


def test_an_event_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LIMIT_BYTES", 100)
    with pytest.raises(ModelFault, match="more than"):
        EventStream().feed(b"x" * 101)
    with pytest.raises(ModelFault, match="more than"):
        EventStream().feed(b"data: " + b"x" * 101 + b"\n\n")
    lines = EventStream()
    with pytest.raises(ModelFault, match="more than"):
        list(map(lines.feed, [b"data: 1234\n"] * 30))


def test_many_events_that_come_at_once_are_not_one_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LIMIT_BYTES", 100)
    assert EventStream().feed(b"data: 1234\n\n" * 50) == [b"1234"] * 50
    assert EventStream().feed(b"data: 1234\r\n\r\n" * 50) == [b"1234"] * 50
