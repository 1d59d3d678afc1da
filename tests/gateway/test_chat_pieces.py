"""Events that add nothing but text are told from all others."""

import orjson
import pytest

from gateway.engine.streams import only_text


def _event(text: object, **delta: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text, **delta}}
    return b"data: " + orjson.dumps({"model": "m", "choices": [choice]}) + b"\n\n"


@pytest.mark.parametrize("text", ["plain", 'say "x"', "back\\slash", "two\nlines", "", "\x7f\u00a0", "half \ufffd"])
def test_a_text_alone_is_read(text: str) -> None:
    assert only_text(_event(text, role="assistant")) == text


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_event("b", tool_calls=[{"index": 0}]), id="tool-call"),
        pytest.param(_event("b", refusal="no"), id="refusal"),
        pytest.param(b'data: {"error":{"message":"b"}}\n\n', id="error"),
        pytest.param(_event("b").replace(b'"index":0', b'"index":1'), id="another-choice"),
        pytest.param(b"data: [DONE]\n\n", id="done"),
        pytest.param(b": keep-alive\n\n", id="comment"),
        pytest.param(_event("b").replace(b'"b"', b'"\xff"'), id="no-unicode"),
    ],
)
def test_an_event_with_more_than_text_is_no_text(other: bytes) -> None:
    assert only_text(other) is None
