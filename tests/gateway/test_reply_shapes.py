"""Random shapes of an engine's deltas: no crash, and one result on three APIs. 300 here; ``-m slow`` tries 20,000.

The slow run: ``pytest -m slow tests/gateway/test_reply_shapes.py``.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access import Allowance
from gateway.engine import Meter
from gateway.messages.answers import MessageStream
from gateway.messages.requests import CreateMessage
from gateway.metrics import Metrics
from gateway.responses.assembly import Assembly
from memloop.wire.errors import EngineError
from memloop_clients.reply_stream import ReplyStream, StreamEvent
from memloop_service import new_registry

Object: TypeAlias = dict[str, Any]
OFFERED = ("weather", "note")
CALM: Any = {"deadline": None, "suppress_health_check": list(HealthCheck)}
DONE = b"data: [DONE]\n\n"
METRICS = Metrics(new_registry())
THINKS = CreateMessage.model_validate(
    {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "thinking": {"type": "adaptive"}}
)

TEXTS = st.text("ab é", max_size=3)
EMPTY: Any = {}
NOTHING: Any = []
ODD: Any = st.none() | st.booleans() | st.integers(-1, 2) | TEXTS | st.just(EMPTY) | st.just(NOTHING)
PARTS: Any = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking", "x"]), "text": TEXTS | ODD}), max_size=2
)
ARGUMENTS: Any = st.sampled_from(["", "{", "{}", '{"a"', ":1}", '{"a":1}', "}"]) | st.just({"a": 1}) | ODD
FUNCTIONS: Any = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["weather", "note", "wea", "ther"]) | ODD, "arguments": ARGUMENTS}
)
PIECES: Any = st.fixed_dictionaries(
    {},
    optional={
        "index": ODD | st.sampled_from(["0", "1"]),
        "id": st.sampled_from(["a", "b"]) | ODD,
        "function": FUNCTIONS | ODD,
        "type": ODD,
    },
)
DELTAS: Any = st.fixed_dictionaries(
    {},
    optional={
        "role": ODD,
        "content": TEXTS | PARTS | ODD,
        "reasoning_content": TEXTS | ODD,
        "refusal": st.none() | st.booleans() | st.just(NOTHING),  # the Messages API shows a refusal's words as a text
        "tool_calls": st.lists(PIECES | ODD, max_size=2) | ODD,
    },
)
REASONS: Any = (
    st.sampled_from([None, None, None, "", "null", "stop", "tool_calls", "length", "end_turn", "abort"]) | ODD
)
CHOICES: Any = st.fixed_dictionaries(
    {}, optional={"index": st.sampled_from([0, "0", None]), "delta": DELTAS | ODD, "finish_reason": REASONS}
)
CHUNKS: Any = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(CHOICES | ODD, max_size=2) | ODD, "error": ODD, "usage": ODD}
)


@dataclass
class Got:
    """What a client has of a stream."""

    text: str = ""
    calls: list[Object] = field(default_factory=list[Object])
    failed: str = ""
    unfit: bool = False
    """Whether a call has arguments for which the Messages API has no place."""

    def result(self) -> tuple[str, list[tuple[str, str]], str]:
        """The text, the calls' names and arguments, and the failure: then only the text counts."""
        made = [] if self.failed else [(call["name"], call["arguments"]) for call in self.calls]
        return self.text, made, self.failed


class Sink:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.raw = b""

    async def send(self, events: bytes) -> None:
        self.raw += events


def read(chunks: list[Object]) -> list[StreamEvent]:
    """The events of a stream of these chunks, as the gateway relays them."""
    stream, found = ReplyStream(OFFERED), list[StreamEvent]()
    for chunk in chunks:
        found += stream.read(b"data: " + orjson.dumps(chunk) + b"\n\n")
    return [*found, *stream.read(DONE)]


def chunks_of(events: list[StreamEvent]) -> list[Object]:
    """The JSON of the events that have any."""
    return [cast(Object, event.chunk) for event in events if event.chunk]


def by_chat(events: list[StreamEvent]) -> Got:
    got, calls = Got(), dict[int, Object]()
    for chunk in chunks_of(events):
        if chunk.get("error"):
            got.failed = chunk["error"]["message"]
            break
        for choice in chunk.get("choices") or NOTHING:
            delta: Object = choice["delta"]
            got.text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or NOTHING:
                call = calls.setdefault(piece["index"], {"name": "", "arguments": ""})
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"]["arguments"]
    got.calls = [calls[place] for place in sorted(calls)]
    return got


def by_messages(events: list[StreamEvent]) -> Got:
    async def send() -> bytes:
        sink, allowance = Sink(), Allowance.__new__(Allowance)  # a meter asks it when it counts
        stream = MessageStream(sink, Meter(METRICS, "r", "chat", allowance), THINKS)
        for event in events:
            await stream.send(event.raw)
        return sink.raw

    got, calls = Got(), dict[int, Object]()
    try:
        sent = asyncio.run(send())
    except EngineError as error:
        return Got(unfit=error.message.startswith("the arguments of"))
    for raw in filter(None, sent.split(b"\n\n")):
        event = orjson.loads(raw.partition(b"\ndata: ")[2])
        delta = event.get("delta", {})
        if "error" in event:
            got.failed = event["error"]["message"]
        elif event.get("content_block", {}).get("type") == "tool_use":
            calls[event["index"]] = {"name": event["content_block"]["name"], "arguments": ""}
        elif "partial_json" in delta:
            calls[event["index"]]["arguments"] += delta["partial_json"]
        got.text += delta.get("text", "")
    got.calls = [calls[place] for place in sorted(calls)]
    return got


def by_responses(events: list[StreamEvent]) -> Got:
    made, got = Assembly(lambda prefix, place: f"{prefix}{place}"), Got()
    for chunk in chunks_of(events):
        if chunk.get("error"):
            got.failed = chunk["error"]["message"]
            break
        for choice in chunk.get("choices") or NOTHING:
            made.feed(choice, choice["delta"])
    made.broken()
    messages = [item for item in made.output if item["type"] == "message"]
    got.text = "".join(part.get("text", "") for item in messages for part in cast(list[Object], item["content"]))
    got.calls = [item for item in made.output if item["type"] == "function_call"]
    return got


def check(chunks: list[Object]) -> None:
    """One result on three APIs; a second reading changes nothing."""
    events = read(chunks)
    chat = by_chat(events)
    assert by_responses(events).result() == chat.result()
    assert all(isinstance(call["arguments"], str) and call["name"] for call in chat.calls if not chat.failed)
    shown = by_messages(events)
    if not shown.unfit:
        assert shown.result() == chat.result()
    assert by_chat(read(chunks_of(events))).result() == chat.result()


@settings(max_examples=300, **CALM)
@given(st.lists(CHUNKS, max_size=6))
def test_any_deltas_have_one_result(chunks: list[Object]) -> None:
    check(chunks)


@pytest.mark.slow
@settings(max_examples=20_000, **CALM)
@given(st.lists(CHUNKS, max_size=6))
def test_any_deltas_have_one_result_twenty_thousand_times(chunks: list[Object]) -> None:
    check(chunks)
