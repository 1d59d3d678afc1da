"""The engine's HTTP side: ``/v1/models`` and ``/v1/chat/completions``, as OpenAI's reference has them, and metrics.

Run: ``python -m inference.openvino.server --model FOLDER --served-model-name NAME --port 7803``. The folder holds one
``.gguf`` file. The key of clients comes by the environment, ``MEMLOOP_ENGINE_API_KEY``.
"""

import argparse
import asyncio
import hmac
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import JsonValue

from inference.checkpoint import config_of
from inference.openvino.chats import ChatRequest
from inference.openvino.generating import Finish, Generator
from inference.openvino.replies import ReplyText
from memloop.wire.chat import Json
from memloop.wire.errors import MODEL_NOT_FOUND, NotFound, Overloaded, Unauthenticated
from memloop_service import ERRORS, ServiceSettings, create_app, new_registry, run
from memloop_service.http import DONE, EventStream, Outlet, data_event, json_text, read_as

_HEARTBEAT_S: Final = 15.0
_MOST_WAITING: Final = 256
"""Requests that may wait; more are refused."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model and how it is served: ``window_tokens`` of prompt and reply, to clients with ``api_key`` if it is set.

    ``reply_tokens`` are the most of a reply to a chat that names no limit, None for as many as the window holds.
    """

    name: str
    generator: Generator
    window_tokens: int
    api_key: str | None = None
    reply_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Delta:
    """A piece of one choice's reply: its text, its tokens so far, and why it ended."""

    choice: int
    text: str
    tokens: int
    finish: Finish | None = None


class Chat:
    """One chat with the model: its prompt in tokens, and its reply in as many choices as were asked for."""

    def __init__(self, served: Served, asked: ChatRequest) -> None:
        asked.refuse_what_is_missing()
        if asked.model != served.name:
            raise NotFound(f"this engine serves {served.name}, not {asked.model}", code=MODEL_NOT_FOUND)
        if served.generator.requests >= _MOST_WAITING:
            raise Overloaded("too many requests wait for this engine", retry_after_s=1)
        self._served, self._asked = served, asked
        self.prompt = served.generator.prompt([each.rendered() for each in asked.messages])
        self._most = asked.tokens_for(
            len(self.prompt), window_tokens=served.window_tokens, reply_tokens=served.reply_tokens
        )
        self._head: Json = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": served.name}

    async def whole(self) -> Json:
        """Return the answer of a chat that does not stream."""
        replies = await asyncio.gather(*(self._reply(choice) for choice in range(self._asked.n)))
        choices: list[JsonValue] = [
            {
                "index": choice,
                "message": {"role": "assistant", "content": text},
                "logprobs": None,
                "finish_reason": finish,
            }
            for choice, (text, finish, _) in enumerate(replies)
        ]
        usage = self._usage(sum(tokens for _, _, tokens in replies))
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": usage}

    async def stream(self, out: Outlet) -> None:
        """Send the answer as it is generated, one choice after the other."""
        tokens = 0
        for choice in range(self._asked.n):
            await self._send(out, choice, {"role": "assistant", "content": ""})
            last = _Delta(choice, "", 0)
            async with aclosing(self._deltas(choice)) as deltas:
                async for last in deltas:
                    if last.text:
                        await self._send(out, choice, {"content": last.text})
            tokens += last.tokens
            await self._send(out, choice, {}, finish=last.finish)
        if self._asked.stream_options is not None and self._asked.stream_options.include_usage:
            await out.send(data_event(json_text(self._chunk([], usage=self._usage(tokens)))))
        await out.send(DONE)

    async def _reply(self, choice: int) -> tuple[str, Finish | None, int]:
        texts, last = list[str](), _Delta(choice, "", 0)
        async with aclosing(self._deltas(choice)) as deltas:
            async for last in deltas:
                texts.append(last.text)
        return "".join(texts), last.finish, last.tokens

    async def _deltas(self, choice: int) -> AsyncGenerator[_Delta]:
        """Yield a choice piece by piece; the last one has the reason why it ended. Raises Overloaded."""
        generator = self._served.generator
        config = self._asked.config(most_tokens=self._most, end=generator.end, choice=choice)
        reply = ReplyText(generator.text, self._asked.stops)
        async with aclosing(generator.generate(self.prompt, config)) as pieces:
            async for piece in pieces:
                if piece.finish == "refused":
                    raise Overloaded("the engine's cache has no room for this chat", retry_after_s=1)
                text = reply.add(piece.ids) if piece.ids else ""
                finish = "stop" if reply.stopped else piece.finish
                rest = reply.end() if finish and not reply.stopped else ""
                yield _Delta(choice, text + rest, reply.tokens, finish)
                if finish:
                    return

    async def _send(self, out: Outlet, choice: int, delta: Json, *, finish: Finish | None = None) -> None:
        told: Json = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish}
        await out.send(data_event(json_text(self._chunk([told]))))

    def _chunk(self, choices: Sequence[Json], usage: Json | None = None) -> Json:
        return {**self._head, "object": "chat.completion.chunk", "choices": list(choices), "usage": usage}

    def _usage(self, tokens: int) -> Json:
        read = len(self.prompt)
        return {"prompt_tokens": read, "completion_tokens": tokens, "total_tokens": read + tokens}


def routes_of(served: Served) -> APIRouter:
    router = APIRouter(responses=ERRORS)

    def admit(request: Request) -> None:
        if served.api_key is None:
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), served.api_key.encode()):
            raise Unauthenticated("this engine wants its key")

    @router.get("/v1/models")
    async def models(request: Request) -> Json:
        admit(request)
        row = {"id": served.name, "object": "model", "created": 0, "owned_by": "openvino"}
        return {"object": "list", "data": [{**row, "max_model_len": served.window_tokens}]}

    @router.post("/v1/chat/completions", response_model=None)
    async def chat(request: Request) -> Response:
        admit(request)
        _, asked = await read_as(request, ChatRequest)
        talk = await asyncio.to_thread(Chat, served, asked)
        if asked.stream:
            return EventStream(talk.stream, heartbeat_s=_HEARTBEAT_S)
        return Response(json_text(await talk.whole()), media_type="application/json")

    _ = models, chat
    return router


class _Load(Collector):
    """The engine's load, by the names that the launcher reads."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def collect(self) -> list[Metric]:
        load = self._generator.pipeline.get_metrics()
        requests, running = self._generator.requests, min(load.scheduled_requests, self._generator.requests)
        return [
            GaugeMetricFamily("openvino:requests_running", "Requests that decode", value=running),
            GaugeMetricFamily("openvino:requests_waiting", "Requests in the queue", value=requests - running),
            GaugeMetricFamily("openvino:cache_used_ratio", "KV cache in use, 0 to 1", value=load.cache_usage / 100),
            CounterMetricFamily("openvino:generated_tokens", "Tokens generated", value=self._generator.generated),
        ]


def _reply_tokens(checkpoint: Path) -> int | None:
    """Return what the checkpoint names as the most new tokens, as transformers and vLLM read it."""
    try:
        most = config_of(checkpoint, "generation_config.json").get("max_new_tokens")
    except FileNotFoundError:
        return None
    return most if isinstance(most, int) and most > 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(prog="inference.openvino.server", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--max-model-len", type=int, required=True)
    parser.add_argument("--max-num-seqs", type=int, default=16)
    parser.add_argument("--max-num-batched-tokens", type=int, default=2048)
    parser.add_argument("--kv-cache-bytes", type=int, default=1 << 30)
    options = parser.parse_args()
    weights = sorted(options.model.glob("*.gguf"))
    if len(weights) != 1:
        parser.error(f"{options.model} holds {len(weights)} GGUF files, and has to hold one")
    generator = Generator(
        weights[0],
        most_at_once=options.max_num_seqs,
        step_tokens=options.max_num_batched_tokens,
        cache_bytes=options.kv_cache_bytes,
    )
    key = os.environ.get("MEMLOOP_ENGINE_API_KEY") or None
    most = _reply_tokens(options.model)
    routes = routes_of(Served(options.served_model_name, generator, options.max_model_len, key, most))
    settings = ServiceSettings(host=options.host, port=options.port, metrics_port=None, unix_socket=None)
    registry = new_registry()
    registry.register(_Load(generator))
    run(create_app("openvino", settings=settings, routers=(routes,), registry=registry, has_keys=bool(key)), settings)


if __name__ == "__main__":
    main()
