"""The short way of reading a stream's text: it reads what parsing each event reads."""

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.pieces import TextEvents, only_text


def _event(text: object, *, model: str = "m", **delta: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text, **delta}}
    return b"data: " + orjson.dumps({"model": model, "choices": [choice]}) + b"\n\n"


def _texts(events: Sequence[bytes]) -> list[str | None]:
    reader = TextEvents()
    return [reader.text_of(event) for event in events]


@given(st.lists(st.text(max_size=12), max_size=8))
def test_texts_are_read_as_they_are_parsed(texts: list[str]) -> None:
    events = [_event(text) for text in texts]
    assert _texts(events) == [only_text(event) for event in events] == texts


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_event("b", tool_calls=[{"index": 0}]), id="tool-call"),
        pytest.param(_event("b", refusal="no"), id="refusal"),
        pytest.param(b'data: {"error":{"message":"b"}}\n\n', id="error"),
        pytest.param(_event("b").replace(b'"index":0', b'"index":1'), id="another-choice"),
        pytest.param(b"data: [DONE]\n\n", id="done"),
        pytest.param(b": keep-alive\n\n", id="comment"),
    ],
)
def test_an_event_with_more_than_text_is_seen_after_many_with_text(other: bytes) -> None:
    assert _texts([_event("a"), _event("c"), other])[-1] is None


def test_a_text_that_stands_elsewhere_in_the_event_is_not_mixed_up_with_it() -> None:
    named = b'data: {"model":"mo","choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
    events = [named % text for text in (b"mo", b"\\u006d\\u006f", b"ma")]
    assert _texts(events) == ["mo", "mo", "ma"]


def test_an_escape_and_a_quote_are_read_as_json_after_a_lesson() -> None:
    texts = ["plain", 'say "x"', "back\\slash", "two\nlines", "\x7f\u00a0", "half \ufffd"]
    assert _texts([_event(text) for text in texts]) == texts


def test_bytes_that_are_no_text_are_no_text_after_a_lesson() -> None:
    broken = _event("b").replace(b'"b"', b'"\xff"')
    assert _texts([_event("a"), broken]) == ["a", only_text(broken)]
