"""``POST /v1/chat/completions``: OpenAI's chat API with recall before the engine and a queued write after it."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from fastapi import APIRouter, Request, Response

from gateway.access import AllowanceDep, PrincipalDep, Room, needs
from gateway.chat.chat import Chat, ChatDep
from gateway.chat.long_context import ReadContext, oversize_of, read_context
from gateway.chat.memory import ChatTurn, begin_turn, standing_of
from gateway.chat.memory_rights import permitted
from gateway.chat.namespaces import asks_for_memory, namespace_of
from gateway.chat.oversized import Oversize
from gateway.chat.recall import with_recalled
from gateway.chat.relay import relay_chat, with_memory
from gateway.engine import EngineCall, LoopModel, Meter, Relay, relay
from gateway.http import (
    Attempt,
    ClientGone,
    JsonBody,
    Outlet,
    StopWhenGone,
    body_of,
    deadline_s,
    error_event,
    json_text,
    object_in,
    objects_in,
    parsed_object,
    read_json,
    refuse_key_of_stream,
    streams,
    subject_of_user,
    validated,
    within,
)
from memloop.clients import RawResponse
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json
from memloop.wire.errors import EngineError, MemloopError
from memloop_service import ERRORS
from memloop_service.direct_route import DirectRoute

PATH = "/v1/chat/completions"
ENGINE_PATH = "chat/completions"

Prepared: TypeAlias = tuple[ChatTurn | None, bytes]
"""The chat's memory turn, if any, and the request body for the engine."""

router = APIRouter(tags=["chat"], route_class=DirectRoute, responses=ERRORS)


@router.post(
    PATH,
    response_model=None,
    dependencies=[needs("chat"), Room],
    responses=streams(),
    openapi_extra=body_of(ChatRequest),
)
async def create_chat_completion(
    request: Request, chat: ChatDep, principal: PrincipalDep, allowance: AllowanceDep
) -> Response:
    """Answer a conversation. ``memory`` controls recall and writes; all other fields pass through to the engine."""
    meter = Meter(chat.backend.metrics, PATH, "chat", allowance)
    with meter.ours():
        body = await read_json(request)
        asked = validated(ChatRequest, body.fields)
        model = chat.backend.models.named(asked.model)
        meter.goes_to(model)
        named = namespace_of(principal, asked, request.headers)
        remembers = asks_for_memory(asked, request.headers, for_users=chat.memory_for_users)
        namespace = named if remembers else None
        asked, left_out = permitted(asked, namespace, principal)
    call = EngineCall(request, chat.backend, model, meter)

    async def answer(attempt: Attempt) -> Response:
        async def prepared(over: Oversize | None) -> Prepared:
            before, context = None, None
            if over is not None:
                before = await standing_of(chat, namespace, asked.memory or NO_OPTIONS)
                context = await read_context(chat, model, asked, body.fields, over, allowance)
            with meter.ours():
                event_id = attempt.event_id(namespace) if namespace is not None else ""
                turn = await begin_turn(
                    chat,
                    model,
                    asked,
                    namespace,
                    event_id=event_id,
                    context=context,
                    left_out=left_out,
                    began=before.newest_token if before is not None else None,
                )
                return turn, engine_body(body, model, turn, context)

        with meter.ours():
            await allowance.admit(body.fields["messages"])
            over = await oversize_of(chat, model, asked, body.fields)
        if over is None:
            return await at_the_engine(call, chat, meter, await prepared(over))
        work = partial(prepared, over)
        if asked.stream:
            return call.event_stream(partial(send_after, work, call, chat, meter))
        return await at_the_engine(call, chat, meter, await _watched(work, request, chat))

    if asked.stream:
        refuse_key_of_stream(request)
    subject = subject_of_user(named.user_id) if named is not None else ""
    return await chat.memory.idempotency.once(request, principal, answer, subject=subject)


async def _watched(work: Callable[[], Awaitable[Prepared]], request: Request, chat: Chat) -> Prepared:
    """Await the work, and cancel it when the client disconnects or its deadline passes."""
    try:
        async with within(deadline_s(request.headers)):
            with StopWhenGone(request.receive):
                return await work()
    except ClientGone:
        chat.backend.metrics.upstream_abort.inc()
        raise


async def send_after(
    work: Callable[[], Awaitable[Prepared]], call: EngineCall, chat: Chat, meter: Meter, out: Outlet
) -> None:
    """Run the work, then stream the engine's events; errors become ``error`` events."""
    try:
        turn, outgoing = await work()
        await call.events(ENGINE_PATH, outgoing, _relayed(chat, turn, meter), out)
    except MemloopError as error:
        if error.http_status >= 500:
            meter.broken()
        await out.send(error_event(error))


def _relayed(chat: Chat, turn: ChatTurn | None, meter: Meter) -> Relay:
    async def stream(upstream: RawResponse, out: Outlet) -> None:
        if turn is None:
            await relay(upstream, meter, out)
        else:
            await relay_chat(chat, upstream, turn, meter, out)

    return stream


async def at_the_engine(call: EngineCall, chat: Chat, meter: Meter, prepared: Prepared) -> Response:
    """Return the engine's answer, with the memory field added."""
    turn, outgoing = prepared

    async def whole(raw: bytes) -> bytes:
        return await remembered(chat, raw, turn, meter)

    stream = _relayed(chat, turn, meter)
    return await call.answer(ENGINE_PATH, outgoing, stream=stream, whole=whole)


def engine_body(body: JsonBody, model: LoopModel, turn: ChatTurn | None, context: ReadContext | None = None) -> bytes:
    """Return the client's own bytes when nothing changes, else its fields without ``memory``.

    Raises InvalidRequest for fields that are nested too deeply.
    """
    fields: Json = body.fields if context is None else {**body.fields, "messages": context.messages}
    if turn is not None and turn.recalled.message is not None and turn.place is not None:
        fields = with_recalled(fields, turn.recalled.message, before=turn.place)
    if not model.keeps_its_name:
        fields = {**fields, "model": model.engine_model}
    if fields is body.fields and "memory" not in fields:
        return body.raw
    return json_text({name: value for name, value in fields.items() if name != "memory"})


async def remembered(chat: Chat, raw: bytes, turn: ChatTurn | None, meter: Meter) -> bytes:
    """Return the engine's answer with the memory field, and queue the write of the turn."""
    answer = parsed_object(raw)
    if not answer:
        raise EngineError("the engine's answer is not a JSON object")
    meter.tokens(answer.get("usage"))
    if turn is None:
        return raw
    with meter.ours():
        memory = await turn.answered(chat, _reply_text(answer))
        return with_memory(answer, memory)


def _reply_text(answer: Json) -> str:
    """Return the text of the first choice; empty when it has none (a tool call)."""
    choices = objects_in(answer.get("choices"))
    message = object_in(choices[0].get("message")) if choices else {}
    content = message.get("content")
    return content if isinstance(content, str) else ""
