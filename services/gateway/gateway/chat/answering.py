"""Answers one chat, for every route that takes one: recall before the engine, a queued write after it.

``POST /v1/chat/completions`` is OpenAI's chat API with both.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from fastapi import APIRouter, Request, Response

from gateway.access import AdmittedDep, Allowance, needs
from gateway.chat.chat import AskedChat, Chat, ChatDep, asked_chat, has_memory
from gateway.chat.memory import ChatTurn, begin_turn, standing_of, with_memory, written
from gateway.chat.oversized import Oversize, ReadContext, oversize_of, read_context
from gateway.chat.recall import with_recalled
from gateway.chat.relay import ChatStream
from gateway.engine import (
    CHAT_PATH,
    EngineCall,
    LoopModel,
    Meter,
    More,
    Outgoing,
    Passing,
    Relay,
    answer_in,
    counted,
    for_engine,
)
from gateway.idempotency import Attempt, refuse_key_of_stream
from memloop.wire.base import has_not_numbers
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError, MemloopError
from memloop_clients.replies import offered_in, whole_reply
from memloop_clients.reply_stream import ReplyStream
from memloop_service import ERRORS
from memloop_service.http import (
    Awaited,
    ClientGone,
    JsonBody,
    Outlet,
    Sink,
    body_of,
    deadline_s,
    error_event,
    json_text,
    object_in,
    objects_in,
    read_as,
    streams,
)

Prepared: TypeAlias = tuple[ChatTurn | None, ReadContext | None]
"""The chat's memory turn and what was read of its oversized parts, if any."""


async def _kept_nowhere(answer: Json) -> Json:
    return answer


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form in which a chat's client gets the answer; by default OpenAI's.

    ``whole`` converts the engine's answer, ``streamed`` wraps the relay of its events, ``place_of`` maps the index of a
    message in the chat to the client's own message. A form's functions raise EngineError for an answer that the form
    cannot hold. ``kept`` stores a whole answer and returns it as the client gets it. ``subject`` names what the answer
    is beside the user's data: ``Idempotency.forget`` deletes it by that name too.
    """

    whole: Callable[[Json], Json] = lambda answer: answer
    streamed: Callable[[Relay], Relay] = lambda relay: relay
    place_of: Callable[[int], int] = lambda place: place
    kept: Callable[[Json], Awaitable[Json]] = _kept_nowhere
    subject: str = ""


OPENAI: Final = AnswerForm()


PATH = "/v1/chat/completions"
router = APIRouter(tags=["chat"], responses=ERRORS)


@router.post(
    PATH,
    response_model=None,
    dependencies=[needs("chat", ignores_unknown=True)],
    responses=streams(),
    openapi_extra=body_of(ChatRequest),
)
async def create_chat_completion(request: Request, chat: ChatDep, allowance: AdmittedDep) -> Response:
    """Answer a conversation. ``memory`` controls recall and writes; all other fields pass through to the engine."""
    meter = Meter(chat.backend.metrics, PATH, "chat", allowance)
    with meter.ours():
        body, fields = await read_as(request, ChatRequest)
        asked = asked_chat(request, chat, allowance.principal, body, fields)
        meter.goes_to(asked.model)
    return await answer_chat(request, chat, allowance, meter, asked)


def answer_chat(
    request: Request, chat: Chat, allowance: Allowance, meter: Meter, asked: AskedChat, form: AnswerForm = OPENAI
) -> Awaitable[Response]:
    """Answer the chat, once per ``Idempotency-Key``. Raises the errors of the limits, of memory and of the engine."""
    answering = _Answering(request, chat, allowance, meter, asked, form)
    if asked.fields.stream:
        refuse_key_of_stream(request)
    owners = () if asked.named is None else (asked.named,)
    return chat.memory.idempotency.once(request, asked.principal, answering.answer, owners=owners, also=form.subject)


class _Answering:
    """One chat on its way through memory and the engine."""

    def __init__(
        self, request: Request, chat: Chat, allowance: Allowance, meter: Meter, asked: AskedChat, form: AnswerForm
    ) -> None:
        self._request = request
        self._chat = chat
        self._allowance = allowance
        self._meter = meter
        self._asked = asked
        self._form = form
        self._call = EngineCall(request, chat.backend, asked.model, meter)
        self._offered = offered_in(asked.body.fields)

    async def answer(self, attempt: Attempt) -> Response:
        """Return the answer, or the stream that will hold it."""
        asked = self._asked
        with self._meter.ours():
            await self._allowance.admit(asked.body.fields["messages"])
            over = None
            if asked.fields.memory is not None and asked.fields.memory.long_context != "off":
                over = await oversize_of(self._chat, asked)
        work = partial(self._prepared, attempt, over)
        if over is not None and asked.fields.stream:
            return self._call.event_stream(partial(self._send_after, work))

        def send(turn: ChatTurn | None, outgoing: Outgoing) -> Awaitable[Response]:
            stream, whole = self._relayed(turn, outgoing), partial(self._remembered, turn)
            return self._call.answer(CHAT_PATH, outgoing, stream=stream, whole=whole)

        turn, context = await (work() if over is None else self._watched(work))
        try:
            return await send(turn, self._outgoing(turn, context))
        except EngineError as refused:
            turn = self._without_notes(turn, refused)
        return await send(turn, self._outgoing(turn, context))

    def _without_notes(self, turn: ChatTurn | None, refused: EngineError) -> ChatTurn:
        """Return the turn that is sent once more where its recalled notes made the chat too long; else raise."""
        if refused.code != CONTEXT_LENGTH_EXCEEDED or turn is None or turn.recalled.message is None:
            raise refused
        self._chat.memory.metrics.recall_left_out.inc()
        return replace(turn, recalled=turn.recalled.left_out())

    def _outgoing(self, turn: ChatTurn | None, context: ReadContext | None) -> Outgoing:
        with self._meter.ours():
            return counted(engine_body(self._asked.body, self._asked.model, turn, context), self._asked.body.fields)

    async def _prepared(self, attempt: Attempt, over: Oversize | None) -> Prepared:
        """Read the oversized parts and recall memories."""
        chat, asked, context, began = self._chat, self._asked, None, None
        if over is not None:
            began = (await standing_of(chat, asked.namespace, asked.fields.memory or NO_OPTIONS)).newest_token
            read = await read_context(chat, asked, over, self._allowance)
            context = read.placed(self._form.place_of)
        elif not has_memory(asked.fields, asked.namespace, asked.left_out):
            return None, None
        with self._meter.ours():
            turn = await begin_turn(
                chat,
                asked.model,
                asked.fields,
                asked.namespace,
                event_id=attempt.event_id(asked.namespace) if asked.namespace is not None else "",
                context=context,
                left_out=asked.left_out,
                began=began,
            )
            return turn, context

    async def _watched(self, work: Callable[[], Awaitable[Prepared]]) -> Prepared:
        """Await the work, and cancel it when the client disconnects or its deadline passes."""
        try:
            async with Awaited(self._request.receive, seconds=deadline_s(self._request.headers)):
                return await work()
        except ClientGone:
            self._chat.backend.metrics.upstream_abort.inc()
            raise

    async def _send_after(self, work: Callable[[], Awaitable[Prepared]], out: Outlet) -> None:
        """Run the work, then stream the engine's events; errors become ``error`` events."""

        def send(turn: ChatTurn | None, outgoing: Outgoing) -> Awaitable[None]:
            return self._call.events(CHAT_PATH, outgoing, self._relayed(turn, outgoing), out)

        try:
            turn, context = await work()
            try:
                await send(turn, self._outgoing(turn, context))
            except EngineError as refused:
                turn = self._without_notes(turn, refused)
                await send(turn, self._outgoing(turn, context))
        except MemloopError as error:
            if error.http_status >= 500:
                self._meter.broken()
            await out.send(error_event(error))

    def _relayed(self, turn: ChatTurn | None, outgoing: Outgoing) -> Relay:
        hides = outgoing.hides_usage

        def stream(more: More, out: Sink) -> Coroutine[Any, Any, None]:
            reply = ReplyStream(self._offered, model=self._asked.model.id)
            if turn is None:
                return Passing(self._meter, hides_usage=hides, reply=reply).relay(more, out)
            return ChatStream(self._chat, turn, self._meter, reply, hides_usage=hides).relay(more, out)

        return self._form.streamed(stream)

    async def _remembered(self, turn: ChatTurn | None, raw: bytes) -> bytes:
        """Return the engine's answer with the memory field, and queue the write of the turn."""
        given = answer_in(raw)
        self._meter.tokens(given.get("usage"))
        answer = whole_reply(given, self._offered, model=self._asked.model.id)
        shown = self._form.whole(answer)
        if turn is None and shown is given and not has_not_numbers(raw):
            return raw
        with self._meter.ours():
            if turn is not None:
                usage = object_in(given.get("usage"))
                shown = with_memory(shown, await turn.answered(self._chat, reply_text(answer), usage=usage))
            return written(await self._form.kept(shown))


def engine_body(body: JsonBody, model: LoopModel, turn: ChatTurn | None, context: ReadContext | None = None) -> bytes:
    """Return the client's own bytes when nothing changes, else its fields without ``memory``.

    Raises InvalidRequest for fields that are nested too deeply.
    """
    fields: Json = body.fields if context is None else {**body.fields, "messages": context.messages}
    if turn is not None and turn.recalled.message is not None and turn.place is not None:
        notes = turn.recalled.message.text()
        fields = with_recalled(fields, notes, place=turn.place, form=model.window.profile.recall_place)
    fields = for_engine(fields, model)
    if fields is body.fields and "memory" not in fields:
        return body.raw
    return json_text({name: value for name, value in fields.items() if name != "memory"})


def reply_text(answer: Json) -> str:
    """Return the text of the first choice; empty when it has none (a tool call)."""
    choices = objects_in(answer.get("choices"))
    message = object_in(choices[0].get("message")) if choices else {}
    content = message.get("content")
    return content if isinstance(content, str) else ""
