"""Makes one response of an engine's chat completion, whole or as a stream, and stores it before it ends."""

from collections.abc import Iterable, Mapping, Sequence

import orjson

from gateway.engine import Meter, Relay, only_text
from gateway.responses.answer import Draft
from gateway.responses.assembly import Assembly
from gateway.responses.file_search import Searched
from gateway.responses.keeping import Keeping
from gateway.responses.requests import Asked
from gateway.responses.tools import Offered
from memloop.sse import EventCutter, data_of
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients import RawResponse
from memloop_service.http import Sink, data_event, object_in, objects_in, parsed_object

_DONE = b"[DONE]"


class Making:
    """One response. ``keeping`` is None for one that is kept nowhere."""

    def __init__(
        self,
        asked: Asked,
        draft: Draft,
        keeping: Keeping | None,
        meter: Meter,
        *,
        tools: Mapping[str, Offered],
        search: Searched | None = None,
    ) -> None:
        """``tools`` are the functions that the engine was given, ``search`` is what was found for it."""
        self.draft = draft
        self.assembly, self.first_events = begun(asked, draft, tools, search)
        self._keeping = keeping
        self._was_kept = False
        self._meter = meter

    def whole(self, answer: Json) -> Json:
        """Return the response of a whole chat completion. Raises EngineError for one without a message."""
        feed_whole(self.assembly, answer)
        return self.draft.answered(self.assembly, object_in(answer.get("usage")), None, stored=self.is_kept)

    async def kept(self, response: Json) -> Json:
        """Keep a response and return it as its client gets it."""
        if self._keeping is not None:
            self._was_kept = await self._keeping.keep(response)
            if not self._was_kept:
                response["store"] = False
        return response

    async def end(self) -> None:
        """Give back the quota of a response that was not kept."""
        if self._keeping is not None and not self._was_kept:
            await self._keeping.give_up()

    def streamed(self, relay: Relay) -> Relay:
        """Return a relay that sends the response's events instead of the chat's."""

        async def stream(upstream: RawResponse, out: Sink) -> None:
            events = _ResponseStream(self, self._meter, out)
            await events.begin()
            try:
                await relay(upstream, events)
                await events.finish()
            finally:
                await events.keep_if_answered()
                await self.end()

        return stream

    @property
    def is_kept(self) -> bool:
        """Whether the response is to be kept."""
        return self._keeping is not None and self._keeping.request.stores

    @property
    def is_kept_anywhere(self) -> bool:
        """Whether the end of the response waits for a store: of responses, or of a conversation."""
        return self._keeping is not None

    async def ended(self, usage: Json, memory: Json) -> Json:
        """Return the response at the end of its stream, kept."""
        response = self.draft.answered(self.assembly, usage, None, stored=self.is_kept)
        if memory:
            response["memory"] = memory
        return await self.kept(response)


def begun(
    asked: Asked, draft: Draft, tools: Mapping[str, Offered], search: Searched | None
) -> tuple[Assembly, Sequence[Json]]:
    """Return an output that has nothing but the search, if there was one, and the search's events."""
    assembly = Assembly(
        draft.item_id,
        logprobs=asked.request.wants_logprobs,
        sums_up=asked.reasoning.asks_for_summary,
        tools=tools,
        cites=search.annotations if search is not None else lambda text: [],
    )
    return assembly, () if search is None else assembly.search_made(search.item(draft.item_id("fs", 0)))


def feed_whole(assembly: Assembly, answer: Json) -> list[Json]:
    """Take a whole chat completion; return the output's events. Raises EngineError for one without a message."""
    choices = objects_in(answer.get("choices"))
    if not choices or not isinstance(choices[0].get("message"), dict):
        raise EngineError("the engine's answer is not a chat completion")
    return assembly.feed(choices[0], object_in(choices[0]["message"]))


class _ResponseStream:
    """Takes a chat's events and sends a response's."""

    def __init__(self, making: Making, meter: Meter, out: Sink) -> None:
        self._making = making
        self._meter = meter
        self._out = out
        self._cutter = EventCutter()
        self._shown: list[bytes] = []
        self._number = 0
        self._usage: Json = {}
        self._memory: Json = {}
        self._over = False

    async def begin(self) -> None:
        """Send the events before the engine's first."""
        response = self._making.draft.waiting("in_progress")
        self._add({"type": f"response.{name}", "response": response} for name in ("created", "in_progress"))
        self._add(self._making.first_events)
        await self._flush()

    async def send(self, events: bytes) -> None:
        """Take events of the chat. Raises EngineError for a chunk that no chat has."""
        texts: list[str] = []
        grows = self._grows_text()
        try:
            for event in self._cutter.feed(events):
                # Consecutive pieces of text, which nearly all are, need nothing but to be passed on
                if grows and (text := only_text(event)):
                    texts.append(text)
                    continue
                self._pass_on(texts)
                if (data := data_of(event)) == _DONE:
                    await self.finish()
                elif data and not self._over:
                    self._read(parsed_object(data))
                texts, grows = [], self._grows_text()
            self._pass_on(texts)
        except EngineError:
            await self._flush()
            raise
        await self._flush()

    async def finish(self) -> None:
        """Send the last event, of a response that has failed if the answer is not complete."""
        if self._over:
            return
        if self._making.assembly.finish_reason is None:
            self._fail("the engine closed the stream before the answer was complete", None)
        else:
            self._over = True
            if self._making.is_kept_anywhere:
                await self._flush()  # its client need not wait for the end of the text until the response is kept
            response = await self._making.ended(self._usage, self._memory)
            self._add([{"type": f"response.{response['status']}", "response": response}])
        await self._flush()

    async def keep_if_answered(self) -> None:
        """Keep a complete answer whose client left before the last event."""
        if not self._over and self._making.assembly.finish_reason is not None:
            self._over = True
            await self._making.ended(self._usage, self._memory)

    def _grows_text(self) -> bool:
        return not self._over and self._making.assembly.grows_text

    def _pass_on(self, texts: Sequence[str]) -> None:
        if texts:
            with self._meter.ours():
                self._shown.append(self._making.assembly.feed_texts(texts, self._number))
            self._number += len(texts)

    def _read(self, chunk: Json) -> None:
        if chunk.get("error"):
            error = object_in(chunk["error"])
            self._fail(str(error.get("message") or "the engine failed"), error.get("code"))
            return
        with self._meter.ours():
            self._usage = object_in(chunk.get("usage")) or self._usage
            self._memory = object_in(chunk.get("memory")) or self._memory
            for choice in objects_in(chunk.get("choices")):
                if choice.get("index", 0) == 0:
                    self._add(self._making.assembly.feed(choice, object_in(choice.get("delta"))))

    def _fail(self, message: str, code: object) -> None:
        self._over = True
        limited = str(code) in {"429", "rate_limit_exceeded"}
        kind = "rate_limit_exceeded" if limited else "server_error"
        response = self._making.draft.failed(self._making.assembly, kind, message)
        self._add([{"type": "response.failed", "response": response}])

    def _add(self, events: Iterable[Json]) -> None:
        """Number the events and put them to those that are sent together."""
        for event in events:
            event["sequence_number"] = self._number
            self._number += 1
            self._shown.append(data_event(orjson.dumps(event), kind=str(event["type"])))

    async def _flush(self) -> None:
        if self._shown:
            shown, self._shown = b"".join(self._shown), []
            await self._out.send(shown)
