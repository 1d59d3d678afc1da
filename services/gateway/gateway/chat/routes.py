"""``POST /v1/chat/completions``: OpenAI's chat API with recall before the engine and a queued write after it.

``GET /v1/memory/profile`` is here too, because the chat model's tokenizer bounds it.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gateway.access import AllowanceDep, NamespaceDep, PrincipalDep, Room, needs
from gateway.chat.answering import answer_chat, asked_chat
from gateway.chat.chat import ChatDep
from gateway.chat.profile import facts_of, profile_of
from gateway.engine import Meter
from memloop.wire.chat import ChatRequest
from memloop.wire.profile import UserProfile
from memloop_service import ERRORS
from memloop_service.http import body_of, read_as, streams

PATH = "/v1/chat/completions"

router = APIRouter(tags=["chat"], responses=ERRORS)
profiles = APIRouter(tags=["memory"], responses=ERRORS)


@router.post(
    PATH,
    response_model=None,
    dependencies=[needs("chat", ignores_unknown=True), Room],
    responses=streams(),
    openapi_extra=body_of(ChatRequest),
)
async def create_chat_completion(
    request: Request, chat: ChatDep, principal: PrincipalDep, allowance: AllowanceDep
) -> Response:
    """Answer a conversation. ``memory`` controls recall and writes; all other fields pass through to the engine."""
    meter = Meter(chat.backend.metrics, PATH, "chat", allowance)
    with meter.ours():
        body, fields = await read_as(request, ChatRequest)
        asked = asked_chat(request, chat, principal, body, fields)
        meter.goes_to(asked.model)
    return await answer_chat(request, chat, allowance, meter, asked)


@profiles.get("/v1/memory/profile", dependencies=[needs("memory:read"), Room])
async def read_profile(
    chat: ChatDep,
    namespace: NamespaceDep,
    max_tokens: Annotated[int, Query(ge=1, le=32_768)] = 1500,
    category: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
) -> UserProfile:
    """Return a user's facts by category, pinned and newest first, within a budget of the chat model's tokens.

    With ``category`` only the facts that have it among their tags.
    """
    facts, splitter = await facts_of(chat.memory.store, namespace, category=category), chat.backend.models.counting
    return await asyncio.to_thread(profile_of, facts, namespace, splitter, max_tokens=max_tokens)
