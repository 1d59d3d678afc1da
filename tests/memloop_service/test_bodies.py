r"""A body with half of a surrogate pair is read with U+FFFD in its place; what is no JSON stays refused."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.requests import Request

from memloop.wire.errors import InvalidRequest
from memloop_service.http.bodies import read_json, read_ours


class Asked(BaseModel):
    """A model of ours."""

    text: str


def request(raw: bytes) -> Request:
    """A request with that body, in two pieces."""
    messages: list[dict[str, object]] = [
        {"type": "http.request", "body": raw[:3], "more_body": True},
        {"type": "http.request", "body": raw[3:], "more_body": False},
    ]

    async def receive() -> dict[str, object]:
        return messages.pop(0)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


_UNITS = st.sampled_from(
    ["\\ud800", "\\uDFFF", "\\ud83d\\ude00", "\\u00e9", '\\"', "\\\\", "\\\\ud800", "a", "é", "😀"]
)


@given(st.lists(_UNITS, max_size=30))
async def test_half_a_pair_becomes_one_replacement_and_nothing_else_changes(units: list[str]) -> None:
    raw = f'{{"text": "{"".join(units)}"}}'.encode()
    expected = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in json.loads(raw)["text"])
    assert (await read_json(request(raw))).fields == {"text": expected}
    assert orjson.loads((await read_json(request(raw))).raw) == {"text": expected}
    assert (await read_ours(request(raw), Asked)).text == expected


@pytest.mark.parametrize(
    "raw",
    [
        b'{"text": "\xff"}',
        b'{"text": "a\nb"}',
        b'{"text": "x"} {}',
        b'{"text": 1, "more": {',
        b'{"text": NaN}',
        b'{"text": 1e400}',
        b"\xef\xbb\xbf{}",
        b"[1]",
        b"null",
        b"",
    ],
)
async def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    for read in (read_json(request(raw)), read_ours(request(raw), Asked)):
        with pytest.raises(InvalidRequest) as refused:
            await read
        assert refused.value.code == "invalid_json"
