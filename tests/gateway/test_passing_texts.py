"""Most events differ from the one before by their text alone, and are not read: nothing else is lost."""

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine import Meter
from gateway.engine.streams import Passing
from memloop_clients.reply_stream import ReplyStream

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TEXTS = st.one_of(st.sampled_from(['say "hi"', "a\\b", "\n\ndata: [DONE]", 'x"},"finish_reason":"stop"']), st.text())


class Counting:
    """A meter that notes the usage. ``counts_tokens``: every event is read."""

    def __init__(self, *, counts_tokens: bool) -> None:
        self.counts_tokens = counts_tokens
        self.usage: object = None

    def streamed(self) -> None:
        pass

    def tokens(self, usage: object) -> None:
        self.usage = usage


CHUNK: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def kinds(text: str) -> list[tuple[Any, Any, Any]]:
    """What an event may hold beside a text: its delta, its other fields, its finish reason."""
    return [
        ({"content": "Tea."}, {}, None),
        ({"content": "Tea."}, {}, None),
        ({"content": text}, {}, None),
        ({"content": text}, {"usage": USAGE}, None),
        ({"content": text}, {}, "stop"),
        ({"content": text, "refusal": "No."}, {}, None),
        ({"content": [{"type": "text", "text": text}]}, {}, None),
        ({"content": text, "tool_calls": [CALL]}, {}, None),
        ({"content": text}, {"error": {"message": text, "type": "server_error"}}, None),
    ]


@st.composite
def chunks(draw: st.DrawFn) -> list[bytes]:
    """A stream of one engine: texts, and whatever else comes between them."""
    separators = draw(st.sampled_from([None, (",", ":")]))
    null: dict[str, Any] = draw(st.sampled_from([{}, {"usage": None}]))
    choices: list[tuple[Any, Any]] = []
    for text in draw(st.lists(TEXTS, max_size=7)):
        delta, more, end = draw(st.sampled_from(kinds(text)))
        index = draw(st.sampled_from([0, 0, 0, 1]))
        choices.append(({"index": index, "delta": delta, "finish_reason": end}, more))
    begun = sorted({choice["index"] for choice, _ in choices})
    choices += [({"index": index, "delta": {}, "finish_reason": "stop"}, {}) for index in begun]
    bodies = [json.dumps({**CHUNK, "choices": [one], **null, **more}, separators=separators) for one, more in choices]
    return [b"data: " + body.encode() + b"\n\n" for body in [*bodies, "[DONE]"]]


def passed(pieces: list[bytes], *, every: bool) -> tuple[bytes, object, bool]:
    meter, reply = Counting(counts_tokens=every), ReplyStream(("look",), model="m")
    passing = Passing(cast(Meter, meter), hides_usage=True, reply=reply)
    sent = b"".join(map(passing.passed, pieces))
    passing.count()
    return sent, meter.usage, reply.failed


@given(events=chunks(), together=st.lists(st.booleans(), min_size=10, max_size=10))
def test_events_that_are_not_read_are_passed_on_as_if_they_were(events: list[bytes], together: list[bool]) -> None:
    blocks = [b""]
    for event, joined in zip(events, together, strict=False):
        blocks = [*blocks[:-1], blocks[-1] + event] if joined else [*blocks, event]
    assert passed(blocks[bool(not blocks[0]) :], every=False) == passed(events, every=True)


def test_what_stands_between_two_texts_of_a_block_is_read() -> None:
    head = b'data: {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": '
    tea = head + b'[{"index": 0, "delta": {"content": "Tea."}, "finish_reason": null}]}\n\n'
    usage = head + b'[], "usage": ' + json.dumps(USAGE).encode() + b"}\n\n"

    sent, counted, failed = passed([tea, tea + usage + tea], every=False)

    assert (sent, counted, failed) == (tea * 3, USAGE, False)
