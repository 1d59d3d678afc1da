"""``POST /v1/chat/completions``: OpenAI's chat API with recall before the engine and a queued write after it."""

from fastapi import APIRouter, Request, Response

from gateway.access import AllowanceDep, PrincipalDep, Room, needs
from gateway.chat.answering import answer_chat, asked_chat
from gateway.chat.chat import ChatDep
from gateway.engine import Meter
from gateway.http import body_of, read_json, streams, validated
from memloop.wire.chat import ChatRequest
from memloop_service import ERRORS
from memloop_service.direct_route import DirectRoute

PATH = "/v1/chat/completions"

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
        asked = asked_chat(request, chat, principal, body, validated(ChatRequest, body.fields))
        meter.goes_to(asked.model)
    return await answer_chat(request, chat, allowance, meter, asked)
