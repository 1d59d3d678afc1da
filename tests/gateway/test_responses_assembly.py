"""The items of an engine's answer, whole or streamed, and the events about them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages.answers import message_of
from gateway.messages.requests import CreateMessage
from gateway.responses.assembly import Assembly
from gateway.responses.items import items_of
from gateway.responses.to_chat import messages_of
from memloop.wire.chat import Json
from tests.gateway.response_items import NAMES, TEXTS, Object


@st.composite
def answers(draw: st.DrawFn) -> Object:
    """An engine's message: any of reasoning, text and calls."""
    message: Object = {"role": "assistant", "content": draw(st.none() | TEXTS)}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(TEXTS)
    calls = draw(st.lists(st.tuples(NAMES, st.text('{}":a', max_size=6)), max_size=3))
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(calls)
        ]
    return message


def deltas_of(message: Object, size: int) -> Iterator[Object]:
    """The message as an engine streams it, in pieces of this size."""
    yield {"role": "assistant", "content": ""}
    for field in ("reasoning_content", "content"):
        yield from ({field: piece} for piece in _pieces(message.get(field) or "", size))
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        head = {"name": function["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": head}]}
        for piece in _pieces(function["arguments"], size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def assembly() -> Assembly:
    return Assembly(lambda prefix, place: f"{prefix}_{place}")


def streamed(message: Object, size: int = 3, reason: str = "stop") -> tuple[Assembly, list[Json]]:
    """What a stream of the message becomes, and its events."""
    made, events = assembly(), list[Json]()
    for delta in deltas_of(message, size):
        events += made.feed({}, delta)
    return made, events + made.feed({"finish_reason": reason}, {})


@given(answers(), st.integers(1, 5))
def test_a_stream_and_a_whole_answer_have_the_same_items(message: Object, size: int) -> None:
    whole = assembly()
    whole.feed({"finish_reason": "stop"}, message)
    made, _ = streamed(message, size)
    assert made.output == whole.output
    texts = [_shown(item) for item in made.output if item["type"] == "message"]
    assert texts == ([message["content"]] if message["content"] else [])


@given(answers(), st.integers(1, 5))
def test_the_items_of_an_answer_become_the_engines_message_again(message: Object, size: int) -> None:
    made, _ = streamed(message, size)
    again = messages_of(items_of([{"role": "user", "content": "x"}, *made.output]), None)[1:]
    expected = {name: value for name, value in message.items() if value is not None}
    if len(expected) == 1:
        assert again == []
    else:
        assert [_spoken(part) for part in again] == [{"content": expected.pop("content", None), **_kept(expected)}]


def _spoken(message: Any) -> Object:
    says_nothing = message["content"] in (None, "")
    return {**message, "content": None if says_nothing else message["content"]}


def _kept(message: Object) -> Object:
    return {name: value for name, value in message.items() if name in {"role", "reasoning_content", "tool_calls"}}


@given(answers(), st.integers(1, 5))
def test_events_are_in_the_public_apis_order(message: Object, size: int) -> None:
    made, events = streamed(message, size)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == made.output
    for index, item in enumerate(made.output):
        own = [event for event in events if event["output_index"] == index]
        assert (own[0]["type"], own[-1]["type"]) == ("response.output_item.added", "response.output_item.done")
        assert {str(event.get("item_id", item["id"])) for event in own} == {str(item["id"])}
        assert _grown(own) == _shown(item)
    assert [event["output_index"] for event in events] == sorted(int(str(event["output_index"])) for event in events)


def _grown(events: Sequence[Json]) -> str:
    """The deltas of one item, after checking that they are framed."""
    kinds = [str(event["type"]).removeprefix("response.") for event in events][1:-1]
    deltas = [str(event["delta"]) for event in events if "delta" in event]
    if kinds[0] == "content_part.added":
        assert kinds[-1] == "content_part.done"
        kinds = kinds[1:-1]
    *middle, last = kinds
    assert last.endswith(".done")
    assert set(middle) <= {last.removesuffix("done") + "delta"}
    return "".join(deltas)


def _shown(item: Mapping[str, Any]) -> str:
    return item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]


@pytest.mark.parametrize("more", [{}, {"reasoning_content": "Hm."}, {"reasoning_content": ""}])
def test_an_engine_that_sends_its_reasoning_under_two_names_is_read_once(more: Json) -> None:
    made, message = assembly(), {"reasoning": "Hm.", **more}
    made.feed({"finish_reason": "stop"}, message)
    assert made.output[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    thinks = CreateMessage.model_validate({**asked, "thinking": {"type": "adaptive"}})
    shown: Any = message_of({"choices": [{"message": message}]}, thinks)
    assert shown["content"][0]["thinking"] == "Hm."


def test_a_refusal_is_a_part_of_its_own() -> None:
    made = assembly()
    events = [*made.feed({}, {"refusal": "I "}), *made.feed({"finish_reason": "stop"}, {"refusal": "won't."})]
    assert made.output[0]["content"] == [{"type": "refusal", "refusal": "I won't."}]
    assert [event["type"] for event in events][2:5] == [
        "response.refusal.delta",
        "response.refusal.delta",
        "response.refusal.done",
    ]
