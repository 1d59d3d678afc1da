"""``/v1/responses``: OpenAI's Responses API, translated to chat completions, with the memory that chats have.

A request without memory and without state passes through if the engines serve the API themselves
(``MEMLOOP_ENGINE_RESPONSES``; docs/decisions/0062-responses-are-translated.md).
"""

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from gateway.access import needs, takes
from gateway.chat import AnswerForm, answer_chat, asked_chat, names_user, prompt_tokens
from gateway.engine import Meter, pass_through
from gateway.idempotency import subject_of_response
from gateway.responses.background.answering import Responding, create_background, followed, shown_response
from gateway.responses.background.jobs import UNDER_WAY
from gateway.responses.conversations.routes import ItemPage, PagingDep, item_page
from gateway.responses.file_search import file_search_of, searched, with_passages
from gateway.responses.keeping import keeping_of
from gateway.responses.making import Making, draft_of
from gateway.responses.records import new_response_id
from gateway.responses.requests import INCLUDES, CountRequest, ResponseRequest, read_request
from gateway.responses.to_chat import asked_after
from gateway.vector_stores import VectorStoresDep
from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, NotFound
from memloop.wire.lists import Deleted
from memloop.wire.memory import Scope
from memloop_service import ERRORS
from memloop_service.http import EventStream, JsonBody, json_text, read_json, read_with, streams

PATH: Final = "/v1/responses"
_CHAT = needs("chat", ignores_unknown=True)

router = APIRouter(tags=["responses"], responses=ERRORS)


class TokenCount(Wire):
    """The size of a request's prompt."""

    object: str = "response.input_tokens"
    input_tokens: int


class ResponseDeleted(Deleted):
    """The answer to a deletion."""

    object: str = "response"


RespondingDep: TypeAlias = Annotated[Responding, Depends()]


@router.post(PATH, response_model=None, responses=streams(), **takes(ResponseRequest, _CHAT))
async def create_response(asking: RespondingDep, vector_stores: VectorStoresDep) -> Response:
    """Create a response. ``memory`` controls recall and writes, ``store: false`` keeps nothing.

    With ``background`` a worker makes it.
    """
    request, chat, principal, tenant = asking.request, asking.chat, asking.principal, asking.tenant
    meter = Meter(chat.backend.metrics, PATH, "responses", asking.allowance)
    with meter.ours():
        body = await read_json(request)
    if asking.responses.passes(body.fields, names_user=names_user(request.headers)):
        return await pass_through(request, chat.backend, asking.allowance, "responses")
    with meter.ours():
        read = await read_with(request, body, read_request)
        if (tool := file_search_of(read)) is not None:
            principal.require("long-read", param="tools")
            await vector_stores.check(tenant, tool)
    if read.request.background:
        return await create_background(asking, read)
    with meter.ours():
        read, earlier, question = await asked_after(read, asking.responses, tenant, chat)
        search = await searched(read, question, vector_stores, tenant, chat)
        question = with_passages(question, search)
        draft = draft_of(read, new_response_id(tenant))
        sent = JsonBody(json_text(question.body), question.body)
        asked = asked_chat(request, chat, principal, sent, question.read)
        scope = asked.named or Scope(tenant=tenant)
        keeping = await keeping_of(read, asking.responses, scope, draft.head, earlier=earlier, memory=chat.memory)
        making = Making(read, draft, keeping, tools=question.tools, search=search)
        meter.goes_to(asked.model)
        subject = subject_of_response(making.draft.id)
        streamed = partial(making.streamed, meter)
        form = AnswerForm(whole=making.whole, streamed=streamed, kept=making.kept, subject=subject)
        answer = None
        try:
            answer = await answer_chat(request, chat, asking.allowance, meter, asked, form)
            return answer
        finally:
            if not isinstance(answer, EventStream):  # whose end comes later
                await asyncio.shield(making.end())


@router.post(PATH + "/input_tokens", **takes(CountRequest, _CHAT))
async def count_input_tokens(asking: RespondingDep) -> TokenCount:
    """Count the tokens of a request's prompt by the model's tokenizer. Recalled memories and images are not counted."""
    fields, models = (await read_json(asking.request)).fields, asking.chat.backend.models
    named = models.chat.id if fields.get("model") is None else fields["model"]
    asked = read_request({**fields, "model": named})
    await asking.allowance.admit()
    splitter = models.named(asked.request.model).splitter
    _, _, question = await asked_after(asked, asking.responses, asking.tenant, asking.chat)
    return TokenCount(input_tokens=await asyncio.to_thread(prompt_tokens, question.read, question.body, splitter))


@router.get(PATH + "/{response_id}", response_model=None, responses=streams(), dependencies=[_CHAT, INCLUDES])
async def get_response(
    response_id: str,
    asking: RespondingDep,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=-1)] = None,
) -> Response:
    """Return a stored response; with ``stream`` the events of a background response, to its end."""
    if not stream and starting_after is None:
        return JSONResponse(await shown_response(asking, response_id))
    response = await shown_response(asking, response_id)
    if response.get("background") is not True:
        raise InvalidRequest("Only background responses can be streamed again.", param="stream")
    is_over, after = response["status"] not in UNDER_WAY, -1 if starting_after is None else starting_after
    if is_over and await asking.responses.queue.jobs.last_event(response_id) < 0:
        message = "The events of this response are not kept any more. Get it without stream."
        raise InvalidRequest(message, param="stream", code="events_expired")
    with ExitStack() as seat:
        seat.enter_context(asking.reading.followers.seat(asking.tenant))
        return followed(asking, response_id, seat.pop_all(), is_over=is_over, starting_after=after)


@router.delete(PATH + "/{response_id}", dependencies=[_CHAT])
async def delete_response(response_id: str, asking: RespondingDep) -> ResponseDeleted:
    """Delete a stored response; a worker stops making it. Those that continue it cannot be continued any more."""
    await asking.responses.records.get(asking.tenant, response_id)
    await asking.responses.forget(asking.tenant, response_id)
    await asking.chat.memory.idempotency.forget(asking.tenant, subject_of_response(response_id))
    return ResponseDeleted(id=response_id)


@router.get(PATH + "/{response_id}/input_items", dependencies=[_CHAT, INCLUDES])
async def list_input_items(response_id: str, asking: RespondingDep, paging: PagingDep) -> ItemPage:
    """List the items of a response's own input."""
    found = await asking.responses.records.get(asking.tenant, response_id)
    items = found.input[::-1] if paging.newest_first else found.input
    ids = [item["id"] for item in items]
    if paging.after is not None and paging.after not in ids:
        raise NotFound("Item not found.", param="after")
    start = 0 if paging.after is None else ids.index(paging.after) + 1
    end = start + paging.limit
    return item_page(items[start:end], has_more=end < len(items))


@router.post(PATH + "/{response_id}/cancel", dependencies=[_CHAT])
async def cancel_response(response_id: str, asking: RespondingDep) -> Json:
    """Stop a background response; harmless when it is over. Closing its connection cancels any other."""
    response = await shown_response(asking, response_id)
    if response.get("background") is not True:
        raise InvalidRequest("Cannot cancel a synchronous response.", param="response_id")
    if response["status"] in UNDER_WAY and await asking.responses.cancel(response_id):
        await asking.responses.records.end(asking.tenant, {**response, "status": "cancelled"}, anyway=True)
    return await shown_response(asking, response_id)
