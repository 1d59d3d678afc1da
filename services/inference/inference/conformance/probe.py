"""The probe of a check: an engine's client, the model, and small requests."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

import aiohttp
from pydantic import JsonValue

from memloop.sse import parse_events
from memloop.wire.chat import Json
from memloop_clients import EngineClient

GREEDY: Json = {"temperature": 0.0, "seed": 7}
NO_THINKING: Json = {"chat_template_kwargs": {"enable_thinking": False}}
TOOL: Json = {
    "type": "function",
    "function": {
        "name": "ignore_memory",
        "description": "Store nothing.",
        "parameters": {
            "type": "object",
            "properties": {"reason": {"type": "string"}},
            "required": ["reason"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}


class Unmet(Exception):
    """The engine failed a check; the message explains how."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One engine under test. ``metrics_url`` serves its gauges; None if unknown."""

    client: EngineClient
    model: str
    metrics_url: str | None

    async def chat(self, text: str = "How are you?", **fields: JsonValue) -> Json:
        """Send a chat of one user message, greedy, without thinking unless the fields request it."""
        return await self.client.chat(self.body(text, **fields))

    def body(self, text: str = "How are you?", **fields: JsonValue) -> Json:
        """Build the same chat as a canonical request, before the endpoint's dialect adapts it."""
        messages: JsonValue = [{"role": "user", "content": text}]
        return {"model": self.model, "messages": messages, "max_tokens": 64, **GREEDY, **NO_THINKING, **fields}

    async def status(self, body: bytes | Json) -> int:
        """Return the status of the response. A request is sent in the endpoint's dialect, bytes unchanged."""
        async with self.client.stream_raw(body if isinstance(body, bytes) else await self._fitted(body)) as response:
            return response.status

    async def stream(self, text: str = "How are you?", **fields: JsonValue) -> AsyncGenerator[str]:
        """Yield the ``data:`` of a stream's events."""
        body = self.body(text, stream=True, stream_options={"include_usage": True}, **fields)
        async with self.client.stream_raw(await self._fitted(body)) as response:
            expect(response.status == 200, f"the stream answered {response.status}")
            async with aclosing(parse_events(response.chunks())) as events:
                async for event in events:
                    yield event.data

    async def _fitted(self, body: Json) -> Json:
        return (await self.client.dialect(self.model)).fit(body)

    async def exposition(self) -> str:
        """Return the engine's metrics as text. Raises Unmet without a metrics address."""
        if self.metrics_url is None:
            raise Unmet("its metrics have no known address")
        async with aiohttp.ClientSession() as session, session.get(self.metrics_url) as response:
            if response.status != 200:
                raise Unmet(f"{self.metrics_url} answered {response.status}")
            return await response.text()


def choice_of(answer: Json) -> Json:
    """Return the first choice. Raises Unmet."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Unmet("the answer has no choice")
    return choices[0]


def message_of(answer: Json) -> Json:
    """Return the first choice's message. Raises Unmet."""
    message = choice_of(answer).get("message")
    if not isinstance(message, dict):
        raise Unmet("the choice has no message")
    return message


def calls_of(answer: Json) -> list[Json]:
    """Return the functions that the message calls."""
    calls = message_of(answer).get("tool_calls")
    listed = cast(list[Json], calls) if isinstance(calls, list) else []
    return [cast(Json, call["function"]) for call in listed if isinstance(call.get("function"), dict)]


def arguments_of(function: Json) -> Json:
    """Parse a call's arguments. Raises Unmet unless they are a JSON object."""
    try:
        value = cast(object, json.loads(str(function.get("arguments"))))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Unmet(f"the arguments are {function.get('arguments')!r}, not a JSON object")
    return cast(Json, value)


def expect(holds: object, otherwise: str) -> None:
    """Raise Unmet with the text unless the condition holds."""
    if not holds:
        raise Unmet(otherwise)
