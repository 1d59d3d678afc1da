"""An engine with a window and manners of its own on a real port. It cuts longer prompts silently, or refuses them.

It counts a token for every four characters of a request. It reads facts ("fact-0017"), and only what it still sees: a
reply that lists every fact proves that every part of a text was read. How it states its window follows the public API
documents of Ollama, LM Studio and OpenRouter; as llama.cpp and vLLM it answers in the shapes recorded of them.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from aiohttp import web
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from tests.fakes.job_engine import Body
from tests.fakes.manners import Manners
from tests.fakes.recorded_answers import Recorded
from tests.fakes.strict_shapes import Refused, vllm
from tests.fakes.web_server import serving

States: TypeAlias = Literal["nothing", "ollama", "llama.cpp", "lmstudio", "vllm", "openrouter"]
Cuts: TypeAlias = Literal["to the window", "to room for the reply", "to half", "never"]
MODEL = "m"
RECORDED: Final = ("llama.cpp", "vllm")
_CHARS = 4
_TRAINED = 32_768


@dataclass
class WindowedEngine:
    """``window``: prompt and reply together, in tokens. ``cuts``: what is left of a longer prompt; "never" refuses it.

    ``num_ctx`` is a parameter of Ollama's Modelfile, ``loaded`` whether the model is in memory already.
    ``hides_cached`` leaves tokens of an equal beginning out of the usage; without ``counts`` there is no usage.
    ``manners`` are its template, the fields that it refuses, and the form of its replies.
    """

    window: int
    states: States = "nothing"
    cuts: Cuts = "to the window"
    num_ctx: int | None = None
    loaded: bool = True
    counts: bool = True
    hides_cached: bool = False
    manners: Manners = field(default_factory=Manners)
    url: str = ""
    asked: list[Body] = field(default_factory=list[Body])
    cut_prompts: list[Body] = field(default_factory=list[Body])
    shown: list[str] = field(default_factory=list[str])
    _last: str = ""

    async def complete(self, request: web.Request) -> web.Response:
        body: Body = await request.json()
        self.asked.append(body)
        self.loaded = True
        if refusal := self.manners.refusal(body):
            return _refused(refusal, self.manners.status)
        text = "\n".join(str(message.get("content") or "") for message in body["messages"])
        text = json.dumps(body.get("tools") or "") + text
        limit = int(body.get("max_tokens") or 512)
        if self.cuts == "never" and (too_long := self._too_long(tokens_of(text), limit)) is not None:
            return web.json_response(too_long.body, status=too_long.status)
        seen = self._kept(text, limit)
        if seen != text:
            self.cut_prompts.append(body)
        self.shown.append(seen)
        message = self.manners.reply(body, seen)
        said = str(message.get("content") or "")
        room = limit if seen != text else min(limit, self.window - tokens_of(seen))
        reason = message.pop("finish_reason", "tool_calls" if message.get("tool_calls") else "stop")
        if tokens_of(said) > room:
            message["content"], reason = said[: room * _CHARS], "length"
        asked = tokens_of(seen) - (tokens_of(_same_beginning(seen, self._last)) if self.hides_cached else 0)
        self._last = seen
        replied = min(room, tokens_of(said) + (40 if message.get("tool_calls") else 0))
        usage = {"prompt_tokens": asked, "completion_tokens": replied, "total_tokens": asked + replied}
        reported: Body = {"usage": usage} if self.counts else {}
        if self.states in RECORDED:
            return Recorded(self.states).answer(body, message, reason, usage, shaped=self.manners.shaped)
        if body.get("stream"):
            return _streamed(message, reason, reported)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        answer: Body = {"id": "x", "object": "chat.completion", "choices": [choice]} | reported
        return web.json_response(self.manners.shaped(answer))

    def _too_long(self, asked: int, limit: int) -> Refused | None:
        """Return the refusal of a prompt of so many tokens that is to have a reply of up to ``limit``."""
        if self.states in RECORDED:  # these end the reply where the window does
            program, beyond = Recorded(self.states), asked >= self.window
            if beyond and self.states == "llama.cpp":
                return program.refusal("too long", asked, self.window)
            return program.refusal("too long", self.window, asked, asked) if beyond else None
        if asked + limit <= self.window:
            return None
        return vllm(  # before 0.32
            400,
            f"This model's maximum context length is {self.window} tokens. However, you requested {limit} output"
            f" tokens and your prompt contains at least {asked} input tokens.",
        )

    def _kept(self, text: str, limit: int) -> str:
        if tokens_of(text) <= self.window:
            return text
        kept = {
            "to the window": self.window,
            "to room for the reply": max(self.window // 2, self.window - limit),
            "to half": self.window // 2 + 2,
            "never": self.window,
        }[self.cuts]
        return text[-kept * _CHARS + 1 :]

    async def models(self, request: web.Request) -> web.Response:
        del request
        if self.states in RECORDED:
            return web.json_response(Recorded(self.states).models(MODEL, self.window))
        row: Body = {"id": MODEL, "object": "model", "created": 0}
        row |= {
            "nothing": {},
            "ollama": {"owned_by": "library"},
            "lmstudio": {"owned_by": "organization_owner"},
            "openrouter": {"context_length": _TRAINED, "top_provider": {"context_length": self.window}},
        }[self.states]
        return web.json_response({"object": "list", "data": [row]})

    async def show(self, request: web.Request) -> web.Response:
        """Ollama's POST /api/show: https://docs.ollama.com/api-reference/show-model-details."""
        if (await request.json())["model"] != MODEL:
            return web.json_response({"error": "model not found"}, status=404)
        set_here = f"num_ctx                        {self.num_ctx}\n" if self.num_ctx else ""
        parameters = f'{set_here}stop                           "<|im_end|>"\ntop_k                          20'
        info = {"general.architecture": "qwen3", "qwen3.context_length": _TRAINED, "qwen3.block_count": 36}
        return web.json_response(
            {"parameters": parameters, "model_info": info, "capabilities": ["completion", "tools"]}
        )

    async def running(self, request: web.Request) -> web.Response:
        """Ollama's GET /api/ps: https://docs.ollama.com/api/ps."""
        del request
        row = {"name": f"{MODEL}:latest", "model": f"{MODEL}:latest", "size_vram": 1, "context_length": self.window}
        return web.json_response({"models": [row] if self.loaded else []})

    async def props(self, request: web.Request) -> web.Response:
        """llama.cpp's GET /props; ``n_ctx`` is that of one slot."""
        del request
        return web.json_response(Recorded("llama.cpp").props(self.window))

    async def of_lmstudio(self, request: web.Request) -> web.Response:
        """LM Studio's GET /api/v0/models: https://lmstudio.ai/docs/developer/rest/endpoints."""
        del request
        row: Body = {"id": MODEL, "object": "model", "type": "llm", "max_context_length": _TRAINED}
        row |= {"state": "loaded", "loaded_context_length": self.window} if self.loaded else {"state": "not-loaded"}
        return web.json_response({"object": "list", "data": [row]})


def tokens_of(text: str) -> int:
    """A token for every four characters that began."""
    return -(-len(text) // _CHARS)


def tokenizer_json() -> str:
    """A ``tokenizer.json`` that counts as the engine does."""
    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = Split(Regex(rf"[\s\S]{{1,{_CHARS}}}"), "isolated")
    return tokenizer.to_str()


def document(facts: int, *, words_between: int = 110) -> str:
    """Prose with numbered facts in it, evenly spread."""
    prose = " ".join(["The harbour lies in the north, and its boats sail at noon."] * (words_between // 11))
    return " ".join(f"{prose} Note fact-{number:04}, which is known: fact-{number:04}." for number in range(facts))


@asynccontextmanager
async def windowed_engine(engine: WindowedEngine) -> AsyncGenerator[WindowedEngine]:
    """The engine while it runs."""
    routes = [web.post("/v1/chat/completions", engine.complete), web.get("/v1/models", engine.models)]
    if engine.states == "ollama":
        version = {"version": "0.40.12"}

        async def shown(request: web.Request) -> web.Response:
            del request
            return web.json_response(version)

        routes += [
            web.get("/api/version", shown),
            web.post("/api/show", engine.show),
            web.get("/api/ps", engine.running),
        ]
    if engine.states == "llama.cpp":
        routes.append(web.get("/props", engine.props))
    if engine.states == "lmstudio":
        routes.append(web.get("/api/v0/models", engine.of_lmstudio))
    async with serving(routes) as url:
        engine.url = f"{url}/v1"
        yield engine


def _refused(message: str, status: int = 400) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "BadRequestError", "code": status}}, status=status)


def _streamed(message: Body, reason: str, reported: Body) -> web.Response:
    """A stream of three chunks: the message, its end, its usage."""
    head: Body = {"id": "x", "object": "chat.completion.chunk"}
    chunks: list[Body] = [
        head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        *([head | {"choices": []} | reported] if reported else []),
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return web.Response(text=f"{text}data: [DONE]\n\n", content_type="text/event-stream")


def _same_beginning(one: str, other: str) -> str:
    length = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]
