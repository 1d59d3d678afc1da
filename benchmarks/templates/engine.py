"""An engine with a chat template: it answers when the template renders the chat, and refuses it with 400 when not."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import orjson
from aiohttp import web
from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template  # pyright: ignore

from benchmarks.templates.conversations import Object
from memloop_service.http import objects_in
from tests.fakes.web_server import serving


class TemplateEngine:
    """``rendered`` is the newest chat as its model reads it; ``refused`` are the template's own refusals, in order.

    ``broken`` are errors in the template itself: those that need tools, or methods that the renderer does not allow.
    """

    def __init__(self, template: str) -> None:
        self._template = template
        self.url = ""
        self.rendered = ""
        self.refused: list[str] = []
        self.broken: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as vLLM does: arguments of calls are objects for the template, text parts one text."""
        body = orjson.loads(await request.read())
        messages = [_as_rendered(message) for message in body["messages"]]
        try:
            rendered, _ = render_jinja_template(  # pyright: ignore
                [messages],
                tools=body.get("tools"),
                chat_template=self._template,
                add_generation_prompt=True,
                bos_token="<s>",
                eos_token="</s>",
            )
            self.rendered = str(rendered[0])
        except (TemplateError, TypeError, KeyError, ValueError) as refusal:
            (self.refused if type(refusal) is TemplateError else self.broken).append(str(refusal))
            error = {"message": str(refusal), "type": "BadRequestError", "code": 400}
            return web.json_response({"error": error}, status=400)
        choice = {"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
        return web.json_response({**head, "choices": [choice], "usage": usage})

    async def models(self, request: web.Request) -> web.Response:
        """List the one model."""
        del request
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})


@asynccontextmanager
async def template_engine(template: str) -> AsyncGenerator[TemplateEngine]:
    """A running engine with the template."""
    engine = TemplateEngine(template)
    routes = [web.get("/v1/models", engine.models), web.post("/v1/chat/completions", engine.answer)]
    async with serving(routes) as url:
        engine.url = f"{url}/v1"
        yield engine


def _as_rendered(message: Object) -> Object:
    parts = objects_in(message.get("content"))
    if parts:
        message = message | {"content": "\n".join(str(part["text"]) for part in parts)}
    if calls := message.get("tool_calls"):
        read = [call | {"function": _with_object(call["function"])} for call in calls]
        message = message | {"tool_calls": read}
    return message


def _with_object(function: Object) -> Object:
    return function | {"arguments": json.loads(function["arguments"] or "{}")}
