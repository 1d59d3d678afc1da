"""A body of one of our models is parsed once; the answer is that of parsing it first and validating it then."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue
from starlette.requests import Request

from memloop.wire.errors import MemloopError
from memloop_service.chores import INLINE_BYTES
from memloop_service.http.bodies import read_json, read_ours, strictly
from memloop_service.http.json_size import has_odd_numbers
from tests.memloop.growth import is_linear


class Asked(BaseModel):
    """A model of ours."""

    text: str
    number: float = 0.0
    whole: int = 0
    more: dict[str, JsonValue] = {}


def request(raw: bytes) -> Request:
    """A request with that body."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": raw, "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


async def outcome(raw: bytes, *, in_two_steps: bool) -> object:
    """The model, or the error's status, code and field."""
    try:
        if in_two_steps:
            return strictly(Asked, (await read_json(request(raw))).raw)
        return await read_ours(request(raw), Asked)
    except MemloopError as error:
        return error.http_status, error.code, error.param


ODD = [
    b'{"text": "x", "number": NaN}',
    b'{"text": "x", "number": -Infinity}',
    b'{"text": "x", "number": 1e400}',
    b'{"text": "x", "number": 1E+400}',
    b'{"text": "x", "more": {"a": [1e999]}}',
    b'{"text": "x", "more": {"a": ' + b"9" * 400 + b".0}}",
    b'{"text": "x", "whole": 9223372036854775808}',
    b'{"text": "x", "whole": true}',
    b'{"text": "NaN and 1e400"}',
    rb'{"text": "\ud83d"}',
    b'{"text": "\xff"}',
    b'{"text": "a\nb"}',
    b'{"text": "x"} {}',
    b'{"text": 1, "more": {',
    b'{"text": 1}',
    b"[1]",
    b"null",
    b"",
    b'\xef\xbb\xbf{"text": "x"}',
    b'{"text": "x", "text": "y"}',
    b'{"text": "x", "more": ' + b'{"a":' * 300 + b"0" + b"}" * 301,
]


@pytest.mark.parametrize("raw", ODD, ids=range(len(ODD)))
async def test_one_step_and_two_agree_on_odd_bodies(raw: bytes) -> None:
    assert await outcome(raw, in_two_steps=False) == await outcome(raw, in_two_steps=True)


_PIECES = st.sampled_from(["1", "e", "E", "+", "-", ".", "0", "99", "NaN", "Infinity", '"', "[", "]", ",", " ", "true"])


@given(st.lists(_PIECES, max_size=30))
async def test_one_step_and_two_agree_on_whatever_stands_for_a_value(pieces: list[str]) -> None:
    raw = f'{{"text": "x", "more": {{"a": {"".join(pieces)}}}}}'.encode()
    assert await outcome(raw, in_two_steps=False) == await outcome(raw, in_two_steps=True)


@pytest.mark.parametrize("text", [b"1", b"0e0", b"NaN", b"1.5,", b"x", b"e", b"\\u0436"])
def test_looking_at_numbers_takes_linear_time(text: bytes) -> None:
    assert is_linear(lambda size: text * (size // len(text)), has_odd_numbers, size=1 << 20)


@pytest.mark.parametrize("size", [10, 2 * INLINE_BYTES])
async def test_the_collector_runs_again_after_a_body_whether_or_not_it_was_valid(size: int) -> None:
    assert await outcome(b'{"text": "%b"}' % (b"x" * size), in_two_steps=False) == Asked(text="x" * size)
    assert await outcome(b'{"text": "%b' % (b"x" * size), in_two_steps=False) == (400, "invalid_json", None)
    assert gc.isenabled()
