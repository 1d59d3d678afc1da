"""Server-sent events by the standard's own examples and by its rules."""

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.sse import EventParser, EventTooLarge, ServerEvent, parse_events

USUAL = [b"", b"data: a", b"data:b", b"data:  two", b"data", b"event: add", b"id: 7", b": note", b"retry: 250"]
ODD = [b"id", b"id: x\0y", b":", b"retry: soon", b"other: 1", "data: 日本".encode(), b"data: \xff\xc3", b"datax: no"]
LINES = st.sampled_from([*USUAL, *ODD])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=24).map(lambda lines: b"".join(a + b for a, b in lines))


def events(*pieces: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def cut(raw: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[start:end] for start, end in pairwise(bounds)]


def by_lines(raw: bytes) -> list[ServerEvent]:
    """The standard's algorithm on a whole stream, written down again in the plainest way."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    kind, data, last_id, found = "", "", "", list[ServerEvent]()
    for line in text.split("\n")[:-1]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                found.append(ServerEvent(kind or "message", data.removesuffix("\n"), last_id))
            kind, data = "", ""
        elif field == "data":
            data += value + "\n"
        elif field == "event":
            kind = value
        elif field == "id" and "\0" not in value:
            last_id = value
    return found


@given(STREAMS, st.lists(st.integers(min_value=0), max_size=12))
def test_any_cut_of_a_stream_gives_the_standards_events(raw: bytes, places: list[int]) -> None:
    assert events(*cut(raw, places)) == by_lines(raw)


@given(STREAMS)
def test_a_byte_order_mark_changes_nothing_even_byte_by_byte(raw: bytes) -> None:
    marked = b"\xef\xbb\xbf" + raw
    assert events(*(marked[n : n + 1] for n in range(len(marked)))) == events(raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [ServerEvent("message", "YHOO\n+2\n10")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [
                ServerEvent("message", "first event", "1"),
                ServerEvent("message", "second event"),
                ServerEvent("message", " third event"),
            ],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [ServerEvent("message", ""), ServerEvent("message", "\n")]),
        (b"data:test\n\ndata: test\n\n", [ServerEvent("message", "test")] * 2),
    ],
    ids=["stocks", "ids", "empty-data", "one-space"],
)
def test_the_standards_examples(raw: bytes, expected: list[ServerEvent]) -> None:
    assert events(raw) == expected


def test_an_event_is_there_with_its_carriage_return_before_the_next_byte_comes() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\r\n\r") == [ServerEvent("message", "a")]
    assert parser.feed(b"\ndata: b\r\r") == [ServerEvent("message", "b")]


def test_a_name_holds_for_its_own_event_and_an_id_for_all_after_it() -> None:
    raw = b"event: add\nid: 1\ndata: a\n\ndata: b\n\nid: no\0pe\ndata: c\n\n"
    kinds = [(event.type, event.id) for event in events(raw)]
    assert kinds == [("add", "1"), ("message", "1"), ("message", "1")]


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 90 + b"\n\n"], [b"data: x\n"] * 60, [b": " + b"c" * 200]])
def test_an_event_over_the_limit_is_an_error_and_no_memory(pieces: list[bytes]) -> None:
    parser = EventParser(max_event_bytes=64)
    with pytest.raises(EventTooLarge, match="over 64 bytes"):
        list(map(parser.feed, pieces))


def test_the_limit_is_on_one_event_and_not_on_the_stream() -> None:
    parser = EventParser(max_event_bytes=64)
    assert sum(len(parser.feed(b": keep-alive\n\ndata: x\n\n")) for _ in range(100)) == 100


async def test_an_event_that_its_stream_does_not_end_is_dropped() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"data: a\n", b"\ndata", b": b\n"):
            yield piece

    assert [event async for event in parse_events(pieces())] == [ServerEvent("message", "a")]
