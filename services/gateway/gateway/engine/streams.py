"""Relays an engine's answer to the client: of a stream only events that tell more than a text are parsed."""

import re
from typing import Final

from fastapi import Request, Response

from gateway.access import Allowance
from gateway.engine.backend import Backend
from gateway.engine.call import EngineCall, Meter, More, Outgoing, counted, for_engine
from gateway.engine.engines import answer_in, with_retry_after
from memloop.sse import EventCutter, data_of
from memloop.wire.base import has_not_numbers
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop_clients.replies import HEAD
from memloop_clients.reply_stream import ReplyStream
from memloop_service.http import Sink, error_event, json_text, object_in, parsed_object, read_json

_REPORT: Final = re.compile(rb'"usage"\s*:\s*\{')
"""How the field begins that reports a usage; in a text its quotes would be escaped."""
_FIELDS: Final = tuple(f'"{name}"'.encode() for name in (*HEAD, "index"))
"""Of every chunk of OpenAI's."""
_MORE: Final = re.compile(
    rb'"(?:usage"\s*:\s*\{|(?:tool_calls|function_call|error|message|detail)"\s*:\s*(?!null|\[\])|(?:content|refusal)"\s*:\s*[\[{]'
    rb'|(?:index|finish_reason)"\s*:\s*"|object"\s*:\s*"error"|logprob"\s*:\s*-?[IN])'
)
_MARKS: Final = (b"[DONE]", b"\nevent:", b"\nerror:")
"""What is in a chat's events that are more than a piece of text in OpenAI's form. One character in front of all
alternatives of a pattern lets it skip what is between."""
_ONE_TEXT: Final = re.compile(rb'(data: \{[^\n]*?"content":\s*+")[^"\\\n]*+("[^\n]*+\n\n)')
"""One event with a text, and what is written in front of the text and behind it."""
_ASKING: Final = ("prompt", "input", "instructions")
MEMORY_HEADER: Final = "x-memloop-memory"
"""The response header of routes without memory; its value is ``none``."""


class Passing:
    """A stream on its way to the client. The usage that it reports is counted at its end.

    ``hides_usage`` leaves out the chunk with the usage alone. ``reply`` reads a chat's events that may not have
    OpenAI's form, and all after the first of them.
    """

    def __init__(self, meter: Meter, *, hides_usage: bool, reply: ReplyStream | None) -> None:
        self._meter = meter
        self._hides = hides_usage
        self._reply = reply
        self._reads = meter.counts_tokens
        """Whether every event is read from now on."""
        self._around: tuple[bytes, bytes] | None = None
        """What the engine writes around a text: most events are the one before with another text, and tell no more."""
        self._cutter = EventCutter()
        self._usage: Json = {}

    def passed(self, data: bytes) -> bytes:
        """Return the events that these bytes complete, for the client; only telling events are parsed."""
        events = self._cutter.whole(data)
        if self._around is not None and not self._reads:
            before, after = self._around
            if events.startswith(before) and events.endswith(after) and b'"' not in events[len(before) : -len(after)]:
                return events
        place = 0 if self._reads else self._telling_in(events)
        texts, told = (events, b"") if place < 0 else _cut_before(events, place)
        if place < 0 and (one := _ONE_TEXT.fullmatch(events)) is not None:
            self._around = one[1], one[2]
        read = EventCutter().feed(told)
        if self._reply is None:
            return texts + b"".join(map(self._shown, read))
        self._reply.skipped(texts)
        self._reads = self._reads or bool(told)
        return texts + b"".join([self._shown(each.raw) for event in read for each in self._reply.read(event)])

    async def relay(self, more: More, out: Sink) -> None:
        """Forward the events in the blocks in which they arrive; give a chat's stream the end that it lacks."""
        try:
            while data := await more():
                self._meter.first_byte()
                if events := self.passed(data):
                    await out.send(events)
            for event in self._reply.close() if self._reply is not None else ():
                await out.send(event.raw)
        except DependencyError as error:
            await send_broken(error, self._meter, out)
        finally:
            self.count()
            self._meter.finish()

    def count(self) -> None:
        """Count the tokens that the engine has reported last."""
        if self._usage:
            self._meter.tokens(self._usage)

    def _telling_in(self, events: bytes) -> int:
        """Return where the first sign is of an event that is more than a text, -1 without one."""
        if self._reply is None:
            found = _REPORT.search(events)
            return found.start() if found else -1
        if b'"choices"' in events and not all(name in events for name in _FIELDS):
            return 0  # chunks lack a field that OpenAI's have: clients are given it
        lines = b"\n" + events  # the end of the line before is where a line begins
        places = [lines.find(mark) for mark in _MARKS]
        if found := _MORE.search(events):
            places.append(found.start())
        return min((place for place in places if place >= 0), default=-1)

    def _shown(self, event: bytes) -> bytes:
        """Count an event, and return what the client gets of it."""
        self._meter.streamed()
        if not _REPORT.search(event):
            return event
        chunk = parsed_object(data_of(event))
        self._usage = object_in(chunk.get("usage") or object_in(chunk.get("response")).get("usage")) or self._usage
        return b"" if self._hides and chunk.get("choices") == [] else event


def _cut_before(events: bytes, place: int) -> tuple[bytes, bytes]:
    """Return the events before the one that holds this place, and the others."""
    if b"\r" in events:
        return b"", events
    start = events.rfind(b"\n\n", 0, place)
    return (events[: start + 2], events[start + 2 :]) if start >= 0 else (b"", events)


_LINE: Final = b"data: "
_LINES: Final = 2
_WITH_TEXT: Final = frozenset({"content", "role"})


def only_text(event: bytes) -> str | None:
    """Return the text of an event that adds nothing but text; None for any other event."""
    if not event.startswith(_LINE) or event.count(b"\n") != _LINES or has_not_numbers(event):
        return None
    chunk = parsed_object(event[len(_LINE) :])
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or any(chunk.get(name) for name in ("usage", "error")):
        return None
    choice = object_in(choices[0])
    delta = object_in(choice.get("delta"))
    text = delta.get("content")
    if choice.get("index", 0) != 0 or choice.get("finish_reason") is not None or not isinstance(text, str):
        return None
    return text if not any(value for name, value in delta.items() if name not in _WITH_TEXT) else None


async def send_broken(error: DependencyError, meter: Meter, out: Sink) -> None:
    """End a stream whose engine was lost with an ``error`` event."""
    meter.lost(error)
    await out.send(error_event(with_retry_after(error)))


async def pass_through(request: Request, backend: Backend, allowance: Allowance, operation: str) -> Response:
    """Answer a request as the engine does, without memory. Raises as ``EngineCall.answer`` does."""
    meter = Meter(backend.metrics, f"/v1/{operation}", operation, allowance)
    with meter.ours():
        body = await read_json(request)
        model = backend.models.asked(body.fields.get("model"))
        meter.goes_to(model)
        await allowance.admit(*(body.fields.get(field) for field in _ASKING))

    async def whole(raw: bytes) -> bytes:
        answer = answer_in(raw)
        meter.tokens(answer.get("usage"))
        return json_text(answer) if has_not_numbers(raw) else raw

    fields = for_engine(body.fields, model)
    outgoing = body.raw if fields is body.fields else json_text(fields)
    sent = counted(outgoing, body.fields) if operation == "completions" else Outgoing(outgoing)
    stream = Passing(meter, hides_usage=sent.hides_usage, reply=None)
    call = EngineCall(request, backend, model, meter)
    response = await call.answer(operation, sent, stream=stream.relay, whole=whole)
    response.headers[MEMORY_HEADER] = "none"
    return response
