"""What becomes of an engine's answer, whole and as a stream: property tests, then the odd ways of engines."""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access import Allowance
from gateway.engine import Meter
from gateway.messages.answers import MessageAnswer, MessageStream, message_of
from gateway.messages.requests import CreateMessage
from gateway.metrics import Metrics
from memloop.sse import EventCutter
from memloop.wire.errors import EngineError
from memloop_clients.replies import whole_reply
from memloop_clients.reply_stream import ReplyStream
from memloop_service import new_registry

Object: TypeAlias = dict[str, Any]
LIGHT = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
TEXTS = st.text(min_size=1, max_size=10)
IDS = st.text("abcdefgh0123_-", min_size=1, max_size=8)
CALLS = st.lists(
    st.tuples(IDS, IDS, st.dictionaries(TEXTS, st.integers() | TEXTS | st.lists(TEXTS, max_size=2), max_size=3)),
    max_size=3,
    unique_by=lambda call: call[0],
)
ENDS = (
    ("stop", "end_turn"),
    ("length", "max_tokens"),
    ("tool_calls", "tool_use"),
    ("function_call", "tool_use"),
    ("content_filter", "refusal"),
)


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.raw = b""

    async def send(self, events: bytes) -> None:
        self.raw += events

    @property
    def events(self) -> list[Object]:
        """The events; each is named as its data says."""
        found: list[Object] = []
        for event in filter(None, self.raw.split(b"\n\n")):
            name, _, data = event.partition(b"\ndata: ")
            found.append(json.loads(data))
            assert name == b"event: " + found[-1]["type"].encode()
        return found


def asking(stops: Sequence[str] = ()) -> CreateMessage:
    """A request that shows thinking and has these stop sequences."""
    fields = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    return CreateMessage.model_validate({**fields, "stop_sequences": stops, "thinking": {"type": "adaptive"}})


def sink_of(kept: Kept, stops: Sequence[str] = ()) -> MessageStream:
    allowance: Any = Allowance.__new__(Allowance)  # a meter only asks it when it counts
    return MessageStream(kept, Meter(Metrics(new_registry()), "r", "chat", allowance), asking(stops))


async def streamed(events: Sequence[bytes], *, stops: Sequence[str] = ()) -> list[Object]:
    """The message events of an engine's stream."""
    kept = Kept()
    stream = sink_of(kept, stops)
    reply = ReplyStream()
    for event in events:
        for read in reply.read(event):
            await stream.send(read.raw)
    return kept.events


def chunk(delta: Object, finish_reason: str | None = None, **more: object) -> bytes:
    """An event of one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, **more}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def whole(
    message: Object, finish_reason: str | None = "stop", *, stops: Sequence[str] = (), **choice: object
) -> Object:
    """The message of an engine's whole answer."""
    answer: Object = {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason, **choice}]}
    return as_documented(json.loads(json.dumps(message_of(whole_reply(answer), asking(stops)))))


def as_documented(message: Object) -> Object:
    """The same message, after a look whether it has every field of the documented one and no other."""
    assert MessageAnswer.model_validate(message).model_dump(mode="json", exclude_unset=True) == message
    return message


def called(call_id: str, name: str, arguments: str) -> Object:
    """A tool call as an engine writes it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def blocks_of(events: Sequence[Object]) -> list[Object]:
    """The blocks that a client puts together, after a look at the order of the events."""
    kinds = [event["type"] for event in events]
    assert (kinds[:2], kinds[-2:]) == (["message_start", "ping"], ["message_delta", "message_stop"])
    as_documented(events[0]["message"])
    blocks: list[Object] = []
    is_open = False
    for event in events[2:-2]:
        if event["type"] == "content_block_start":
            assert (event["index"], is_open) == (len(blocks), False)
            blocks.append({**event["content_block"], "partial": ""})
            is_open = True
            continue
        assert (event["index"], is_open) == (len(blocks) - 1, True)
        if event["type"] == "content_block_stop":
            is_open = False
            continue
        _add(blocks[-1], event["delta"])
    assert not is_open
    for block in blocks:
        partial = block.pop("partial")
        if block["type"] == "tool_use":
            block["input"] = json.loads(partial or "{}")
    return blocks


def _add(block: Object, delta: Object) -> None:
    if delta["type"] == "input_json_delta":
        block["partial"] += delta["partial_json"]
    else:
        field = delta["type"].removesuffix("_delta")
        block[field] += delta[field]


@LIGHT
@given(thought=st.just("") | TEXTS, text=st.just("") | TEXTS, calls=CALLS)
def test_every_part_of_a_whole_answer_is_a_block(thought: str, text: str, calls: list[tuple[str, str, Object]]) -> None:
    message = whole(
        {
            "role": "assistant",
            "content": text or None,
            "reasoning_content": thought,
            "tool_calls": [called(call_id, name, json.dumps(given)) for call_id, name, given in calls],
        }
    )
    blocks = message["content"]
    assert [block["thinking"] for block in blocks if block["type"] == "thinking"] == ([thought] if thought else [])
    assert [block["text"] for block in blocks if block["type"] == "text"] == ([text] if text else [])
    used = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    assert used == calls
    assert message["stop_reason"] == ("tool_use" if calls else "end_turn")


@LIGHT
@given(thought=st.lists(TEXTS, max_size=3), text=st.lists(TEXTS, max_size=3), calls=CALLS, cut=st.integers(1, 9))
async def test_a_stream_gives_the_same_blocks_as_the_whole_answer(
    thought: list[str], text: list[str], calls: list[tuple[str, str, Object]], cut: int
) -> None:
    events = [chunk({"reasoning": piece}) for piece in thought] + [chunk({"content": piece}) for piece in text]
    for index, (call_id, name, given_) in enumerate(calls):
        written = json.dumps(given_)
        events.append(chunk({"tool_calls": [{"index": index, **called(call_id, name, "")}]}))
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": written[start : start + cut]}}]})
            for start in range(0, len(written), cut)
        ]
    raw = b"".join([*events, chunk({}, "stop"), DONE])
    pieces = [raw[start : start + 40 * cut] for start in range(0, len(raw), 40 * cut)]
    cutter = EventCutter()
    found = await streamed([event for piece in pieces for event in cutter.feed(piece)])
    blocks = blocks_of(found)
    expected = whole(
        {
            "content": "".join(text),
            "reasoning": "".join(thought),
            "tool_calls": [called(call_id, name, json.dumps(given_)) for call_id, name, given_ in calls],
        }
    )
    assert blocks == expected["content"]
    assert found[-2]["delta"]["stop_reason"] == expected["stop_reason"]


@pytest.mark.parametrize(("finish_reason", "stop_reason"), ENDS, ids=[end for end, _ in ENDS])
async def test_stop_reasons(finish_reason: str, stop_reason: str) -> None:
    calls = [called("c", "n", "{}")] if stop_reason == "tool_use" else []
    assert whole({"content": "x", "tool_calls": calls}, finish_reason)["stop_reason"] == stop_reason
    events = await streamed([chunk({"content": "x", "tool_calls": calls}), chunk({}, finish_reason), DONE])
    assert events[-2]["delta"] == {"stop_reason": stop_reason, "stop_sequence": None}


@pytest.mark.parametrize("name", ["stop_reason", "matched_stop"], ids=["vLLM", "SGLang"])
async def test_the_stop_sequence_that_was_met_is_named(name: str) -> None:
    message = whole({"content": "x"}, stops=["END", "."], **{name: "END"})
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")
    events = await streamed([chunk({"content": "x"}), chunk({}, "stop", **{name: "END"}), DONE], stops=["END"])
    assert events[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_a_stop_token_is_no_stop_sequence() -> None:
    assert whole({"content": "x"}, stops=["END"], stop_reason=151645)["stop_reason"] == "end_turn"


async def test_a_refusal_is_a_text_and_a_reason() -> None:
    message = whole({"content": None, "refusal": "I will not."})
    assert ([block["text"] for block in message["content"]], message["stop_reason"]) == (["I will not."], "refusal")
    events = await streamed([chunk({"refusal": "I will "}), chunk({"refusal": "not."}, "stop"), DONE])
    assert [block["text"] for block in blocks_of(events)] == ["I will not."]
    assert events[-2]["delta"]["stop_reason"] == "refusal"


def test_usage_counts_cached_tokens_apart() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    answer: Object = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert message_of(answer, asking())["usage"] == {
        "input_tokens": 36,
        "output_tokens": 20,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 0,
        "output_tokens_details": {"thinking_tokens": 5},
    }


def test_arguments_that_a_limit_has_cut_off_are_read_as_far_as_they_go() -> None:
    message = whole({"tool_calls": [called("c", "n", '{"a": 1, "b": "hel')]}, "length")
    assert (message["content"][0]["input"], message["stop_reason"]) == ({"a": 1}, "max_tokens")


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [called("c", "n", "[1]")]},
        {"tool_calls": [called("c", "n", "not JSON")]},
        {"tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]},
    ],
    ids=["a list", "no JSON", "no name"],
)
def test_a_tool_call_that_is_none_is_the_engines_fault(message: Object) -> None:
    with pytest.raises(EngineError):
        whole(message)


def test_an_answer_without_a_choice_is_the_engines_fault() -> None:
    with pytest.raises(EngineError):
        message_of({"choices": []}, asking())


async def test_an_empty_answer_is_a_message_without_blocks() -> None:
    assert whole({"content": ""})["content"] == []
    assert blocks_of(await streamed([chunk({"role": "assistant", "content": ""}), chunk({}, "stop"), DONE])) == []


async def test_only_the_first_choice_is_shown() -> None:
    other = b'data: {"choices": [{"index": 1, "delta": {"content": "other"}}]}\n\n'
    blocks = blocks_of(await streamed([chunk({"content": "one"}), other, chunk({}, "stop"), DONE]))
    assert [block["text"] for block in blocks] == ["one"]


async def test_comments_pass() -> None:
    kept = Kept()
    await sink_of(kept).send(b": keep-alive\n\n")
    assert kept.raw == b": keep-alive\n\n"
