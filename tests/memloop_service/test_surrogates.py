"""A body full of escapes is made well-formed in linear time, without a call of Python for each."""

import cProfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop_service.surrogates import WINDOW, without_lone_surrogates
from tests.memloop.growth import is_linear

_BYTES = 1 << 19
UNITS = [rb"\ud800", rb"a\ud800", rb"\ud83d\ude00", rb"\u00e9", rb"\"", rb"\\", b"abcdef"]


def body(unit: bytes, size: int) -> bytes:
    return b'"%b\\ud800"' % (unit * (size // len(unit)))


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_body_of_twice_the_length_costs_about_twice_the_time(unit: bytes) -> None:
    assert is_linear(lambda size: body(unit, size), without_lone_surrogates, size=2 * _BYTES)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_an_escape_costs_no_call_of_python(unit: bytes) -> None:
    sent = body(unit, _BYTES)
    with cProfile.Profile() as profile:
        without_lone_surrogates(sent)
    calls = sum(entry.callcount for entry in profile.getstats())
    assert 1 <= calls < 30 * (_BYTES // WINDOW)


def test_the_event_loop_gets_the_interpreter_once_a_window() -> None:
    sent = body(rb"\ud83d\ude00", _BYTES)
    with cProfile.Profile() as profile:
        without_lone_surrogates(sent)
    searches = [entry.callcount for entry in profile.getstats() if "'sub' of" in str(entry.code)]
    assert searches == [_BYTES // WINDOW + 1]  # and the rest of the last window


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (rb"\\ud83d\ude00", rb"\\ud83d\ufffd"),
        (rb"\\\ud83d\ude00", rb"\\\ud83d\ude00"),
        (rb"\ud83d\\ude00", rb"\ufffd\\ude00"),
        (rb"\ud83d\ud83d\ude00\ude00", rb"\ufffd\ud83d\ude00\ufffd"),
        (rb"\ud83d\uDE00\uDE00", rb"\ud83d\uDE00\ufffd"),
        (rb"\ud83d\u00e9", rb"\ufffd\u00e9"),
        (b"\\ud83d\0", b"\\ud83d\0"),
        (rb"\ud83", rb"\ud83"),
    ],
)
def test_only_a_surrogate_that_stands_alone_is_replaced(sent: bytes, kept: bytes) -> None:
    assert without_lone_surrogates(sent) == kept


_PIECES = st.sampled_from([rb"\\", rb"\ud83d", rb"\uDE00", rb"\u00e9", b"\\", b"d83d", b"ude00", b'"', rb"\n", b"text"])


@given(pieces=st.lists(_PIECES, max_size=40), window=st.integers(1, 40))
def test_a_window_changes_nothing_wherever_it_ends(pieces: list[bytes], window: int) -> None:
    sent = b"".join(pieces)
    assert without_lone_surrogates(sent, window=window) == without_lone_surrogates(sent, window=len(sent) + 1)
