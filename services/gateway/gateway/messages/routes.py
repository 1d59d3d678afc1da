"""``POST /v1/messages`` and its token count: Anthropic's Messages API, answered by any engine of chat completions."""

import asyncio

from fastapi import APIRouter, Request, Response

from gateway.access import AllowanceDep, PrincipalDep, estimate_tokens, needs, takes
from gateway.chat import AnswerForm, ChatDep, answer_chat, asked_chat, prompt_tokens
from gateway.engine import Meter, Relay
from gateway.messages.answers import MessageAnswer, TokenCount, message_of
from gateway.messages.requests import CountTokens, CreateMessage, count_tokens_in, create_message_in
from gateway.messages.stream import MessageStream
from gateway.messages.style import ERRORS
from gateway.messages.translation import TranslatedChat, prompt_of, translated
from memloop.wire.chat import Json
from memloop_service.http import json_response, read_json, read_with, streams

PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"
_CHAT = needs("chat", ignores_unknown=True)

router = APIRouter(tags=["messages"], responses=ERRORS)


@router.post(PATH, response_model=None, responses=streams(MessageAnswer), **takes(CreateMessage, _CHAT))
async def create_message(request: Request, chat: ChatDep, principal: PrincipalDep, allowance: AllowanceDep) -> Response:
    """Answer a conversation. ``memory`` controls recall and writes, as in chat completions."""
    meter = Meter(chat.backend.metrics, PATH, "chat", allowance)
    with meter.ours():
        body = await read_json(request)
        asked = await read_with(request, body, create_message_in)
        model = chat.backend.models.named(asked.model)
        translation = await read_with(request, body, lambda _: translated(asked, model.dialect))
        known = asked_chat(request, chat, principal, translation.body, translation.fields)
        meter.goes_to(known.model)
        tokens = await estimate_tokens(translation.body.fields["messages"], model.splitter) if asked.stream else 0
    return await answer_chat(request, chat, allowance, meter, known, _form(asked, translation, meter, tokens))


@router.post(COUNT_PATH, response_model=None, responses={200: {"model": TokenCount}}, **takes(CountTokens, _CHAT))
async def count_message_tokens(request: Request, chat: ChatDep, allowance: AllowanceDep) -> Response:
    """Count the tokens of a prompt by the model's tokenizer. Recalled memories and pictures are not counted."""
    asked = await read_with(request, await read_json(request), count_tokens_in)
    model = chat.backend.models.named(asked.model)
    fields, sent = prompt_of(asked)
    await allowance.admit()
    counted = await asyncio.to_thread(prompt_tokens, fields, sent, model.splitter)
    return json_response(TokenCount(input_tokens=counted))


def _form(asked: CreateMessage, translation: TranslatedChat, meter: Meter, tokens: int) -> AnswerForm:
    stops, thinking = asked.stop_sequences or (), asked.shows_thinking

    def whole(answer: Json) -> Json:
        return message_of(answer, model=asked.model, stops=stops, thinking=thinking)

    def streamed(relay: Relay) -> Relay:
        return lambda upstream, out: relay(
            upstream, MessageStream(out, meter, model=asked.model, stops=stops, thinking=thinking, asked=tokens)
        )

    return AnswerForm(whole=whole, streamed=streamed, place_of=translation.places.__getitem__)
