"""Answers the requests for background responses: queued, looked up, followed, cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

import orjson
from fastapi import Response
from fastapi.responses import JSONResponse

from gateway.access import Asking, Charge
from gateway.chat import AskedChat, ChatDep, asked_chat
from gateway.idempotency import Attempt, refuse_key_of_stream, subject_of_response
from gateway.long_read.reading import ReadingDep, sent
from gateway.responses.background.jobs import UNDER_WAY, Background, BackgroundDep, ResponseJob
from gateway.responses.keeping import Keeping, keeping_of
from gateway.responses.making import Draft, draft_of
from gateway.responses.records import new_response_id
from gateway.responses.requests import Asked
from gateway.responses.to_chat import asked_after
from memloop.wire.chat import NO_OPTIONS, Json
from memloop.wire.errors import Erased, InvalidRequest, NotFound, RateLimited
from memloop.wire.memory import Scope
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
    charge: Charge | None,
    responses: Background,
) -> Json:
    """Store the response as queued and queue its job; return it. An earlier attempt's response is returned as it is.

    That attempt may have ended before it queued the job, which is then queued now. Raises Conflict when its user was
    erased meanwhile, RateLimited without room, Unavailable.
    """
    records, tenant, id_ = responses.records, keeping.scope.tenant, draft.id
    with suppress(NotFound):
        known = (await records.get(tenant, id_)).response
        if known["status"] not in UNDER_WAY or await responses.status(id_) is not None:
            return known
    kept = {name: value for name, value in asked.fields.items() if name not in _NOT_FOR_WORKERS}
    job = ResponseJob(
        response_id=id_,
        tenant=tenant,
        fields={**kept, "input": [*earlier, *keeping.input]},
        named=plain.named,
        namespace=plain.namespace,
        memory=plain.fields.memory,
        left_out=plain.left_out,
        event_id=attempt.event_id(plain.namespace) if plain.namespace is not None else "",
        began=keeping.began,
        conversation=asked.request.conversation_id,
        charge=charge,
    )
    queued = draft.waiting("queued")
    await keeping.keep_queued(queued)
    try:
        await responses.enqueue(job, queued)
    except (RateLimited, Erased):
        with suppress(NotFound):
            await records.delete(tenant, id_)
        raise
    return queued


_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(frozen=True, slots=True)
class Responding(Asking):
    """A request about responses, and what serves it."""

    chat: ChatDep
    responses: BackgroundDep
    reading: ReadingDep


async def create_background(asking: Responding, asked: Asked) -> Response:
    """Queue the response; return it, or the stream of its events. Raises the errors of limits and of bad requests."""
    if not asked.request.stores:
        message = "A background response is stored: store must not be false."
        raise InvalidRequest(message, param="store", code="unsupported_value")
    if (asked.request.memory or NO_OPTIONS).long_context == "auto":
        message = "memory.long_context is not supported in the background: use a long read."
        raise InvalidRequest(message, param="memory.long_context", code="unsupported_parameter")
    tenant, chat, request = asking.tenant, asking.chat, asking.request
    asked, earlier, question = await asked_after(asked, asking.responses, tenant, chat)
    body = JsonBody(json_text(question.body), question.body)
    plain = asked_chat(request, chat, asking.principal, body, question.read)

    def id_of(attempt: Attempt) -> str:
        return new_response_id(tenant, attempt.id_of())

    async def work(attempt: Attempt) -> Response:
        await asking.allowance.admit(question.body["messages"])
        draft, scope = draft_of(asked, id_of(attempt)), plain.named or Scope(tenant=tenant)
        keeping = await keeping_of(asked, asking.responses, scope, draft.head, earlier=earlier, memory=chat.memory)
        assert keeping is not None  # noqa: S101 - it is stored
        with ExitStack() as seat:
            if asked.request.stream:
                seat.enter_context(asking.reading.followers.seat(tenant))
            try:
                charge = asking.allowance.charge
                queued = await queue_response(
                    asked, earlier, plain, draft, keeping, attempt=attempt, charge=charge, responses=asking.responses
                )
            except BaseException:
                await asyncio.shield(keeping.give_up())
                raise
            return followed(asking, draft.id, seat.pop_all()) if asked.request.stream else JSONResponse(queued)

    if asked.request.stream:
        refuse_key_of_stream(request)
    owners = () if plain.named is None else (plain.named,)
    return await chat.memory.idempotency.once(
        request, asking.principal, work, owners=owners, also=lambda attempt: subject_of_response(id_of(attempt))
    )


async def shown_response(asking: Responding, id_: str) -> Json:
    """Return a stored response; one that a worker makes has its job's status. Raises NotFound."""
    response = (await asking.responses.records.get(asking.tenant, id_)).response
    if response["status"] in UNDER_WAY:
        status = await asking.responses.status(id_)
        if status in (*UNDER_WAY, "cancelled", "failed"):
            return {**response, "status": status}
    return response


def followed(
    asking: Responding, id_: str, seat: ExitStack, *, is_over: bool = False, starting_after: int = -1
) -> Response:
    """Stream the events of a background response after that number; ``seat`` is given back at the end."""

    async def events() -> AsyncGenerator[tuple[bytes, str]]:
        entries = asking.reading.followers.entries(id_, is_over=is_over, starting_after=starting_after)
        async for entry in entries:
            kind = orjson.loads(entry.raw)["type"]
            yield entry.raw.encode(), kind
            if kind in _LAST:
                return

    heartbeat_s = asking.chat.backend.heartbeat_s
    return sent(events(), lambda event: data_event(event[0], kind=event[1]), seat=seat, heartbeat_s=heartbeat_s)
