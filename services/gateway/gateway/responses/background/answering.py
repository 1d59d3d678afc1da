"""Answers the requests for background responses: queued, looked up, followed, cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, suppress
from typing import Final

import orjson
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from gateway.access import Allowance, Principal
from gateway.chat import AskedChat, Chat, asked_chat
from gateway.idempotency import Attempt, refuse_key_of_stream, subject_of_response
from gateway.long_read.reading import Followers, sent
from gateway.responses.background.jobs import UNDER_WAY, Background, ResponseJob
from gateway.responses.items import named_items
from gateway.responses.keeping import Keeping, keeping_of
from gateway.responses.making import Draft, draft_of
from gateway.responses.records import Owner, placed_response_id
from gateway.responses.requests import Asked
from gateway.responses.to_chat import asked_after
from memloop.wire.chat import NO_OPTIONS, Json
from memloop.wire.errors import Erased, InvalidRequest, NotFound, RateLimited
from memloop_service.http import JsonBody, data_event, json_text

_NOT_FOR_WORKERS = ("background", "stream", "stream_options", "previous_response_id", "conversation", "store")


async def queue_response(
    asked: Asked,
    earlier: Sequence[Json],
    plain: AskedChat,
    draft: Draft,
    keeping: Keeping,
    *,
    attempt: Attempt,
    background: Background,
) -> Json:
    """Store the response as queued and queue its job; return it. An earlier attempt's response is returned as it is.

    That attempt may have ended before it queued the job, which is then queued now. Raises Conflict when its user was
    erased meanwhile, RateLimited without room, Unavailable.
    """
    records, owner, id_ = background.responses.records, keeping.owner, draft.id
    with suppress(NotFound):
        known = (await records.get(owner.tenant, id_)).response
        if known["status"] not in UNDER_WAY or await background.status(id_) is not None:
            return known
    kept = {name: value for name, value in asked.fields.items() if name not in _NOT_FOR_WORKERS}
    items = named_items(asked.items, id_.removeprefix("resp_"))
    job = ResponseJob(
        response_id=id_,
        tenant=plain.principal.tenant,
        fields={**kept, "input": [*earlier, *items]},
        named=plain.named,
        namespace=plain.namespace,
        memory=plain.fields.memory,
        left_out=plain.left_out,
        event_id=attempt.event_id(plain.namespace) if plain.namespace is not None else "",
        began=keeping.began,
        conversation=asked.request.conversation_id,
    )
    queued = draft.waiting("queued")
    await keeping.keep_queued(queued)
    try:
        await background.enqueue(job, queued)
    except (RateLimited, Erased):
        with suppress(NotFound):
            await records.delete(owner.tenant, id_)
        raise
    return queued


_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


async def create_background(
    request: Request,
    asked: Asked,
    background: Background,
    followers: Followers,
    *,
    chat: Chat,
    principal: Principal,
    allowance: Allowance,
) -> Response:
    """Queue the response; return it, or the stream of its events. Raises the errors of limits and of bad requests."""
    if not asked.request.stores:
        message = "A background response is stored: store must not be false."
        raise InvalidRequest(message, param="store", code="unsupported_value")
    if (asked.request.memory or NO_OPTIONS).long_context == "auto":
        message = "memory.long_context is not supported in the background: use a long read."
        raise InvalidRequest(message, param="memory.long_context", code="unsupported_parameter")
    tenant, responses = principal.tenant, background.responses
    limit = chat.limit_field(asked.request.model)
    asked, earlier, question = await asked_after(asked, responses, tenant, limit_field=limit)
    plain = asked_chat(request, chat, principal, JsonBody(json_text(question.body), question.body), question.read)

    def id_of(attempt: Attempt) -> str:
        return placed_response_id(tenant, attempt.id_of())

    async def work(attempt: Attempt) -> Response:
        await allowance.admit(question.body["messages"])
        draft, owner = draft_of(asked, id_of(attempt)), Owner(tenant, plain.named)
        size = len(json_text({"response": draft.head}))
        keeping = await keeping_of(asked, responses, owner, draft.id, earlier=earlier, size=size, memory=chat.memory)
        assert keeping is not None  # noqa: S101 - it is stored
        with ExitStack() as seat:
            if asked.request.stream:
                seat.enter_context(followers.seat(tenant))
            try:
                queued = await queue_response(
                    asked, earlier, plain, draft, keeping, attempt=attempt, background=background
                )
            except BaseException:
                await asyncio.shield(keeping.give_up())
                raise
            if not asked.request.stream:
                return JSONResponse(queued)
            return _followed(draft.id, followers, seat.pop_all(), heartbeat_s=chat.backend.heartbeat_s)

    if asked.request.stream:
        refuse_key_of_stream(request)
    owners = () if plain.named is None else (plain.named,)
    return await chat.memory.idempotency.once(
        request, principal, work, owners=owners, also=lambda attempt: subject_of_response(id_of(attempt))
    )


async def shown_response(tenant: str, id_: str, background: Background) -> Json:
    """Return a stored response; one that a worker makes has its job's status. Raises NotFound."""
    response = (await background.responses.records.get(tenant, id_)).response
    if response["status"] in UNDER_WAY:
        status = await background.status(id_)
        if status in (*UNDER_WAY, "cancelled", "failed"):
            return {**response, "status": status}
    return response


async def follow_response(
    tenant: str, id_: str, background: Background, followers: Followers, *, starting_after: int, heartbeat_s: float
) -> Response:
    """Stream the events of a background response after that number. Raises NotFound, InvalidRequest, RateLimited."""
    response = await shown_response(tenant, id_, background)
    if response.get("background") is not True:
        raise InvalidRequest("Only background responses can be streamed again.", param="stream")
    is_over = response["status"] not in UNDER_WAY
    if is_over and await background.queue.jobs.last_event(id_) < 0:
        message = "The events of this response are not kept any more. Get it without stream."
        raise InvalidRequest(message, param="stream", code="events_expired")
    with ExitStack() as seat:
        seat.enter_context(followers.seat(tenant))
        return _followed(
            id_, followers, seat.pop_all(), heartbeat_s=heartbeat_s, is_over=is_over, starting_after=starting_after
        )


async def cancel_response(tenant: str, id_: str, background: Background) -> Json:
    """Stop a background response; harmless when it is over. Raises NotFound, InvalidRequest for any other response."""
    response = await shown_response(tenant, id_, background)
    if response.get("background") is not True:
        raise InvalidRequest("Cannot cancel a synchronous response.", param="response_id")
    if response["status"] in UNDER_WAY and await background.cancel(id_):
        await background.responses.records.end(tenant, {**response, "status": "cancelled"}, anyway=True)
    return await shown_response(tenant, id_, background)


def _followed(
    id_: str,
    followers: Followers,
    seat: ExitStack,
    *,
    heartbeat_s: float,
    is_over: bool = False,
    starting_after: int = -1,
) -> Response:
    async def events() -> AsyncGenerator[tuple[bytes, str]]:
        async for entry in followers.entries(id_, is_over=is_over, starting_after=starting_after):
            kind = orjson.loads(entry.raw)["type"]
            yield entry.raw.encode(), kind
            if kind in _LAST:
                return

    return sent(events(), lambda event: data_event(event[0], kind=event[1]), seat=seat, heartbeat_s=heartbeat_s)
