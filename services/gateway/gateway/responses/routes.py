"""``/v1/responses``: OpenAI's Responses API, translated to chat completions, with the memory that chats have.

A request without memory and without state passes through if the engines serve the API themselves
(``MEMLOOP_ENGINE_RESPONSES``; docs/decisions/0062-responses-are-translated.md).
"""

import asyncio
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from gateway.access import needs, takes
from gateway.chat import AnswerForm, answer_chat, asked_chat, names_user, prompt_tokens
from gateway.engine import Meter, pass_through
from gateway.idempotency import subject_of_response
from gateway.responses.background.answering import Responding, create_background, follow_response, shown_response
from gateway.responses.background.answering import cancel_response as cancel
from gateway.responses.conversations.routes import ItemPage, item_page
from gateway.responses.file_search import file_search_of, searched, with_passages
from gateway.responses.keeping import keeping_of
from gateway.responses.making import Making, draft_of
from gateway.responses.records import Owner, new_response_id
from gateway.responses.requests import CountBody, ResponseBody, check_include, read_request
from gateway.responses.to_chat import asked_after
from gateway.vector_stores import VectorStoresDep
from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import NotFound
from memloop.wire.lists import Deleted
from memloop_service import ERRORS
from memloop_service.http import EventStream, JsonBody, json_text, read_json, read_with, streams

PATH: Final = "/v1/responses"
_CHAT = needs("chat", ignores_unknown=True)
Limit: TypeAlias = Annotated[int, Query(ge=1, le=100)]
Include: TypeAlias = Annotated[list[str] | None, Query()]

router = APIRouter(tags=["responses"], responses=ERRORS)


class TokenCount(Wire):
    """The size of a request's prompt."""

    object: str = "response.input_tokens"
    input_tokens: int


class ResponseDeleted(Deleted):
    """The answer to a deletion."""

    object: str = "response"


RespondingDep: TypeAlias = Annotated[Responding, Depends()]


@router.post(PATH, response_model=None, responses=streams(), **takes(ResponseBody, _CHAT))
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
        limit = chat.limit_field(read.request.model)
        read, earlier, question = await asked_after(read, asking.responses, tenant, limit_field=limit)
        window = chat.backend.models.named(read.request.model).window.tokens
        search = await searched(read, question, vector_stores, tenant, window_tokens=window)
        question = with_passages(question, search)
        draft = draft_of(read, new_response_id(tenant))
        size = len(json_text({"response": draft.head}))  # what can be read may be nested too deeply to be written
        sent = JsonBody(json_text(question.body), question.body)
        asked = asked_chat(request, chat, principal, sent, question.read)
        owner, memory = Owner(tenant, asked.named), chat.memory
        keeping = await keeping_of(read, asking.responses, owner, draft.id, earlier=earlier, size=size, memory=memory)
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


@router.post(PATH + "/input_tokens", **takes(CountBody, _CHAT))
async def count_input_tokens(asking: RespondingDep) -> TokenCount:
    """Count the tokens of a request's prompt by the model's tokenizer. Recalled memories and images are not counted."""
    fields, models = (await read_json(asking.request)).fields, asking.chat.backend.models
    named = models.chat.id if fields.get("model") is None else fields["model"]
    asked = read_request({**fields, "model": named})
    await asking.allowance.admit()
    limit, splitter = asking.chat.limit_field(asked.request.model), models.named(asked.request.model).splitter
    _, _, question = await asked_after(asked, asking.responses, asking.tenant, limit_field=limit)
    return TokenCount(input_tokens=await asyncio.to_thread(prompt_tokens, question.read, question.body, splitter))


@router.get(PATH + "/{response_id}", response_model=None, responses=streams(), dependencies=[_CHAT])
async def get_response(
    response_id: str,
    asking: RespondingDep,
    include: Include = None,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=-1)] = None,
) -> Response:
    """Return a stored response; with ``stream`` the events of a background response, to its end."""
    check_include(include)
    if not stream and starting_after is None:
        return JSONResponse(await shown_response(asking, response_id))
    return await follow_response(asking, response_id, starting_after=-1 if starting_after is None else starting_after)


@router.delete(PATH + "/{response_id}", dependencies=[_CHAT])
async def delete_response(response_id: str, asking: RespondingDep) -> ResponseDeleted:
    """Delete a stored response; a worker stops making it. Those that continue it cannot be continued any more."""
    await asking.responses.records.get(asking.tenant, response_id)
    await asking.background.forget(asking.tenant, response_id)
    await asking.chat.memory.idempotency.forget(asking.tenant, subject_of_response(response_id))
    return ResponseDeleted(id=response_id)


@router.get(PATH + "/{response_id}/input_items", dependencies=[_CHAT])
async def list_input_items(
    response_id: str,
    asking: RespondingDep,
    include: Include = None,
    after: Annotated[str | None, Query(max_length=256)] = None,
    limit: Limit = 20,
    order: Literal["asc", "desc"] = "desc",
) -> ItemPage:
    """List the items of a response's own input."""
    check_include(include)
    found = await asking.responses.records.get(asking.tenant, response_id)
    items = found.input if order == "asc" else found.input[::-1]
    ids = [item["id"] for item in items]
    if after is not None and after not in ids:
        raise NotFound("Item not found.", param="after")
    start = 0 if after is None else ids.index(after) + 1
    return item_page(items[start : start + limit], has_more=start + limit < len(items))


@router.post(PATH + "/{response_id}/cancel", dependencies=[_CHAT])
async def cancel_response(response_id: str, asking: RespondingDep) -> Json:
    """Stop a background response. Closing its connection cancels any other."""
    return await cancel(asking, response_id)
