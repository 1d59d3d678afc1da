"""Admits a background response: stores it as queued, and queues its job."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from gateway.chat import AskedChat, Chat
from gateway.idempotency import Attempt
from gateway.responses.answer import Draft
from gateway.responses.background.jobs import UNDER_WAY, Background, ResponseJob
from gateway.responses.keeping import Keeping
from gateway.responses.naming import named_items
from gateway.responses.requests import Asked
from memloop.wire.chat import NO_OPTIONS, Json
from memloop.wire.errors import Erased, InvalidRequest, NotFound, RateLimited

_NOT_FOR_WORKERS = ("background", "stream", "stream_options", "previous_response_id", "conversation", "store")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A background response that may be queued."""

    asked: Asked
    earlier: Sequence[Json]
    plain: AskedChat
    draft: Draft
    keeping: Keeping


def check_background(asked: Asked) -> None:
    """Raise InvalidRequest for a request that no worker can answer later."""
    if not asked.request.stores:
        message = "A background response is stored: store must not be false."
        raise InvalidRequest(message, param="store", code="unsupported_value")
    if (asked.request.memory or NO_OPTIONS).long_context == "auto":
        message = "memory.long_context is not supported in the background: use a long read."
        raise InvalidRequest(message, param="memory.long_context", code="unsupported_parameter")


async def queue_response(admitted: Admitted, attempt: Attempt, background: Background, chat: Chat) -> Json:
    """Store the response as queued and queue its job; return it. An earlier attempt's response is returned as it is.

    That attempt may have ended before it queued the job, which is then queued now. Raises Conflict when its user was
    erased meanwhile, RateLimited without room, Unavailable.
    """
    records, owner, id_ = background.responses.records, admitted.keeping.owner, admitted.draft.id
    with suppress(NotFound):
        known = (await records.get(owner.tenant, id_)).response
        if known["status"] not in UNDER_WAY or await background.jobs.status(id_) is not None:
            return known
    job = await _job(admitted, attempt, chat)
    queued = admitted.draft.queued()
    await admitted.keeping.keep_queued(queued)
    try:
        await background.jobs.enqueue(job, queued)
    except (RateLimited, Erased):
        with suppress(NotFound):
            await records.delete(owner.tenant, id_)
        raise
    return queued


async def _job(admitted: Admitted, attempt: Attempt, chat: Chat) -> ResponseJob:
    plain, fields = admitted.plain, admitted.asked.fields
    kept = {name: value for name, value in fields.items() if name not in _NOT_FOR_WORKERS}
    items = named_items(admitted.asked.items, admitted.draft.id.removeprefix("resp_"))
    conversation = admitted.keeping.conversation
    return ResponseJob(
        response_id=admitted.draft.id,
        tenant=plain.principal.tenant,
        fields={**kept, "input": [*admitted.earlier, *items]},
        named=plain.named,
        namespace=plain.namespace,
        memory=plain.fields.memory,
        left_out=plain.left_out,
        event_id=attempt.event_id(plain.namespace) if plain.namespace is not None else "",
        began=await chat.memory.queue.lanes.newest_token(),
        conversation=None if conversation is None else conversation.began.id,
        erasures="" if conversation is None else conversation.began.erasures,
    )
