"""The translation between the Responses API and chat completions: what both can hold arrives, the rest is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.responses.items import ITEMS, items_of
from gateway.responses.to_chat import messages_of
from memloop.wire.base import object_in, objects_in
from memloop.wire.errors import InvalidRequest
from tests.gateway.response_items import (
    CALLS_BY_TYPE,
    OUTPUTS_BY_CALL,
    TEXTS,
    Object,
    conversations,
    joined_system,
    said_in_items,
    said_in_messages,
)


def test_every_item_that_a_request_may_have_is_drawn() -> None:
    assert {"message", "reasoning", "file_search_call", *CALLS_BY_TYPE, *OUTPUTS_BY_CALL.values()} == (
        ITEMS.keys() - {"item_reference"}
    )


@given(conversations())
def test_a_chat_says_what_the_items_say_in_their_order(items: list[Object]) -> None:
    messages = messages_of(items_of(items), None)
    assert list(said_in_messages(messages)) == joined_system(list(said_in_items(items)))


@given(conversations(), st.data())
def test_outputs_are_right_behind_their_calls_in_whatever_order(items: list[Object], data: st.DataObject) -> None:
    """As OpenAI's chat API and strict engines demand it."""
    mixed = data.draw(st.permutations([*items, *(item for item in items if item.get("type") in CALLS_BY_TYPE)]))
    open_calls, called, answered = set[str](), list[str](), set[str]()
    for message in map(object_in, messages_of(items_of(mixed), None)):
        if message["role"] == "tool":
            open_calls.remove(str(message["tool_call_id"]))
            answered.add(str(message["tool_call_id"]))
            continue
        ids = [str(call["id"]) for call in objects_in(message.get("tool_calls"))]
        open_calls, called = set(ids), called + ids
    outputs = [item for item in items if item.get("type") in OUTPUTS_BY_CALL.values()]
    assert len(called) == len(set(called)) == len([item for item in items if item.get("type") in CALLS_BY_TYPE])
    assert answered == {str(item.get("call_id") or item["id"]) for item in outputs}


def test_system_messages_around_a_file_search_are_one() -> None:
    search: Object = {"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed"}
    around: list[Object] = [{"role": role, "content": role} for role in ("system", "developer")]
    messages = messages_of(items_of([around[0], search, around[1]]), None)
    assert messages == [{"role": "system", "content": "system\n\ndeveloper"}]


def test_a_file_search_alone_is_no_input() -> None:
    search: Object = {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed"}
    with pytest.raises(InvalidRequest, match="no input"):
        messages_of(items_of([search]), None)


@given(conversations(), TEXTS)
def test_instructions_come_first(items: list[Object], instructions: str) -> None:
    [first, *_] = messages_of(items_of(items), instructions)
    assert isinstance(first, dict)
    assert first["role"] == "system"
    assert str(first["content"]).startswith(instructions)


@given(conversations(), st.data())
def test_an_item_with_a_field_that_engines_do_not_know_is_refused_by_name(
    items: list[Object], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(items) - 1))
    items[place] = {**items[place], "unheard_of": 1}
    with pytest.raises(InvalidRequest) as refused:
        items_of(items)
    assert (refused.value.http_status, refused.value.param) == (400, f"input[{place}].unheard_of")
