"""A reply's tokens become text piece by piece."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.openvino.chats import ChatRequest
from inference.openvino.replies import ReplyText


def decode(ids: Sequence[int]) -> str:
    """A token is a byte, as in the models' own vocabularies at their smallest."""
    return bytes(ids).decode("utf-8", "replace")


def pieces_of(text: str, *stops: str, size: int = 1) -> tuple[list[str], ReplyText]:
    reply, ids = ReplyText(decode, stops), text.encode()
    told = list[str]()
    for start in range(0, len(ids), size):
        told.append(reply.add(ids[start : start + size]))
        if reply.stopped:
            return told, reply
    return [*told, reply.end()], reply


@given(st.text(), st.integers(1, 5))
def test_the_pieces_make_up_the_whole_text(text: str, size: int) -> None:
    assert "".join(pieces_of(text, size=size)[0]) == text


@given(st.text("ab"), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.integers(1, 3))
def test_nothing_from_a_stop_string_on_is_told(text: str, stops: list[str], size: int) -> None:
    told, reply = pieces_of(text, *stops, size=size)
    assert reply.stopped == any(stop in text for stop in stops)
    whole = "".join(told)
    assert text.startswith(whole) if reply.stopped else whole == text
    assert not any(stop in whole for stop in stops)


@pytest.mark.parametrize(
    ("limits", "reply_tokens", "most"),
    [({}, None, 90), ({}, 20, 20), ({}, 200, 90), ({"max_tokens": 50}, 20, 50), ({"max_completion_tokens": 9}, 20, 9)],
)
def test_a_chat_that_names_no_limit_gets_the_checkpoints(
    limits: dict[str, int], reply_tokens: int | None, most: int
) -> None:
    asked = ChatRequest.model_validate({"model": "small", "messages": [{"role": "user", "content": "Hi."}], **limits})
    assert asked.tokens_for(10, window_tokens=100, reply_tokens=reply_tokens) == most


def test_half_a_character_waits_for_its_other_half() -> None:
    assert pieces_of("né", size=1)[0] == ["n", "", "é", ""]


def test_what_may_begin_a_stop_string_is_held_back() -> None:
    assert pieces_of("a END.", "END")[0] == ["a", " ", "", "", ""]
    assert pieces_of("a EN.", "END")[0] == ["a", " ", "", "", "EN.", ""]


def test_a_reply_counts_its_tokens() -> None:
    assert pieces_of("four")[1].tokens == 4
