"""The launcher and the tiny model on a real vLLM: what our clients rely on."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from itertools import takewhile

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from inference.engines import BUILDERS, Adapter, EnginePlan, PromptLookup
from memloop.chunking import TokenizerSplitter
from memloop.ports import Completion, Prompt, Sampling, ToolChoice
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage, Json
from memloop.wire.errors import EngineError
from memloop_clients import EngineClient, InferenceClient
from memloop_clients.endpoints import ENDPOINTS
from tests.contract.conftest import TinyEngine
from tests.fakes import vllm_asked
from tests.fakes.web_server import serving

pytestmark = pytest.mark.engine
PROFILE = load_profile("tiny")
EVERYTHING = EnginePlan(
    engine="vllm",
    tls_cert="/tls/tls.crt",
    tls_key="/tls/tls.key",
    tls_client_ca="/tls/ca.crt",
    python="python3",
    model="/models/m",
    served_name="m",
    host="127.0.0.1",
    port=7803,
    profile="default",
    max_model_len=4096,
    max_num_seqs=8,
    dtype="bfloat16",
    kv_cache_memory_bytes=1024,
    kv_cache_dtype="fp8",
    memory_fraction=0.8,
    tensor_parallel_size=2,
    data_parallel_size=2,
    prefill_chunk_tokens=8192,
    speculation=PromptLookup(),
    adapters=(Adapter("mine", "/adapters/mine"),),
    adapter_rank=32,
    quantization="fp8",
    enforce_eager=True,
    prefix_caching=False,
    tool_call_parser="hermes",
    reasoning_parser="qwen3",
    strict_tools=True,
    load_format="dummy",
    revision="main",
    seed=7,
    trust_remote_code=True,
    media_domains=("images.example.com", "cdn.example.com"),
)


def chat(text: str, *, thinking: bool = False) -> Prompt:
    return Prompt((ChatMessage(role="user", content=text),), Sampling(max_tokens=64), thinking=thinking)


async def ask(engine: TinyEngine, prompt: Prompt) -> Completion:
    async with EngineClient(engine.openai_url, model=engine.model) as client:
        return await client.complete(prompt)


def test_vllms_own_parser_understands_every_flag_that_we_write() -> None:
    command = BUILDERS["vllm"](EVERYTHING).argv[3:]
    parsed = subprocess.run(
        [sys.executable, vllm_asked.__file__, "arguments", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert parsed.returncode == 0, parsed.stderr[-2000:]
    understood = json.loads(parsed.stdout.splitlines()[-1])
    expected = {
        "model": "/models/m",
        "ssl_certfile": "/tls/tls.crt",
        "ssl_keyfile": "/tls/tls.key",
        "ssl_ca_certs": "/tls/ca.crt",
        "enable_ssl_refresh": True,
        "ssl_cert_reqs": 2,
        "served_model_name": ["m"],
        "max_model_len": 4096,
        "max_num_seqs": 8,
        "dtype": "bfloat16",
        "kv_cache_memory_bytes": 1024,
        "kv_cache_dtype": "fp8",
        "tensor_parallel_size": 2,
        "data_parallel_size": 2,
        "max_num_batched_tokens": 8192,
        "enable_lora": True,
        "max_lora_rank": 32,
        "quantization": "fp8",
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "enable_auto_tool_choice": True,
        "tool_call_parser": "hermes",
        "tool_strict_level": "parameter",
        "reasoning_parser": "qwen3",
        "generation_config": "vllm",
        "enable_prompt_tokens_details": True,
        "load_format": "dummy",
        "revision": "main",
        "seed": 7,
        "trust_remote_code": True,
        "allowed_media_domains": ["images.example.com", "cdn.example.com"],
        "port": 7803,
    }
    assert {name: understood.get(name) for name in expected} == expected


@dataclass
class Inside:
    """A host of the operator's network that notes what it is asked for; ``/moved`` leads to its other name."""

    url: str = ""
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.Response:
        """``GET`` of any path."""
        self.asked.append(request.path)
        if request.path == "/moved":
            raise web.HTTPFound(f"http://localhost:{URL(self.url).port}/secret")
        return web.Response(body=b"no picture")


@pytest.fixture
async def inside() -> AsyncGenerator[Inside]:
    """The host, on 127.0.0.1."""
    it = Inside()
    async with serving([web.get("/{path:.*}", it.answer)]) as url:
        it.url = url
        yield it


def fetched(*pictures: tuple[str, tuple[str, ...]]) -> list[str]:
    """The outcome of each picture's URL in a vLLM that was started with these hosts as its allowed ones."""
    asked = list[tuple[str, list[str]]]()
    environment = dict[str, str]()
    for url, domains in pictures:
        command = BUILDERS["vllm"](replace(EVERYTHING, media_domains=domains))
        first = command.argv.index("--allowed-media-domains") + 1
        asked.append((url, list(takewhile(lambda word: not word.startswith("--"), command.argv[first:]))))
        environment = command.environment_within(os.environ)
    run = [sys.executable, vllm_asked.__file__, "media", json.dumps(asked)]
    done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300, env=environment)
    return done.stdout.splitlines()[-len(asked) :]


async def test_vllm_fetches_no_picture_from_the_operators_network_nor_follows_an_allowed_host_there(
    inside: Inside,
) -> None:
    pictures = (f"{inside.url}/secret", ()), (f"{inside.url}/moved", ("127.0.0.1",))
    refused, _ = await asyncio.to_thread(fetched, *pictures)
    assert "The URL must be from one of the allowed domains" in refused
    assert inside.asked == ["/moved"]


async def test_the_launcher_serves_the_model_the_profile_and_a_working_tokenizer(tiny_engine: TinyEngine) -> None:
    async with InferenceClient(tiny_engine.launcher_url) as client:
        served = await client.model()
        profile = await client.profile()
        splitter = TokenizerSplitter(await client.tokenizer())
    assert (served.id, served.engine_url) == (tiny_engine.model, tiny_engine.openai_url)
    assert served.max_model_len >= PROFILE.budget.window_tokens
    assert profile.ref == PROFILE.ref
    assert splitter.count("My locker code is 482.") == 6


async def test_a_prompt_costs_the_tokens_that_the_tokenizer_counts(tiny_engine: TinyEngine) -> None:
    async with InferenceClient(tiny_engine.launcher_url) as client:
        splitter = TokenizerSplitter(await client.tokenizer())
    short, long = "The locker code of Marta is 482.", "The locker code of Marta is 482. " * 20
    spent = [(await ask(tiny_engine, chat(text))).usage.input_tokens for text in (short, long)]
    assert spent[1] - spent[0] == splitter.count(long) - splitter.count(short)


async def test_auto_recognises_the_engine_and_a_limit_over_the_window_teaches_it_nothing(
    tiny_engine: TinyEngine,
) -> None:
    too_much = replace(chat("How are you?"), sampling=Sampling(max_tokens=10_000_000))
    async with EngineClient(tiny_engine.openai_url, model=tiny_engine.model) as client:
        with pytest.raises(EngineError):
            await client.complete(too_much)
        assert await client.dialect(tiny_engine.model) == ENDPOINTS["vllm"].dialect


async def test_a_chat_ends_by_itself(tiny_engine: TinyEngine) -> None:
    reply = await ask(tiny_engine, chat("My locker code is 482."))
    assert reply.finish_reason == "stop"
    assert "remember" in reply.content


async def test_thinking_is_split_off_only_when_it_was_asked_for(tiny_engine: TinyEngine) -> None:
    thought = await ask(tiny_engine, chat("My locker code is 482.", thinking=True))
    plain = await ask(tiny_engine, chat("My locker code is 482."))
    assert thought.reasoning.strip()
    assert "<think>" not in thought.content
    assert plain.reasoning == ""


@pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "not thinking"])
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("said", ["[user]: My locker code is 482.", "[user]: How are you?\n[assistant]: I am fine."])
async def test_the_memory_writer_makes_one_native_tool_call_that_fits_its_schema(
    tiny_engine: TinyEngine, said: str, choice: ToolChoice, thinking: bool
) -> None:
    prompt = replace(PROFILE.prompt("memory", conversation=said), tool_choice=choice, thinking=thinking)
    reply = await ask(tiny_engine, prompt)
    assert reply.finish_reason == "tool_calls"
    (call,) = reply.tool_calls
    arguments: Json = json.loads(call.function.arguments)
    required = {"add_memory": {"memory_list", "summary"}, "search_memory": {"query"}}
    assert set(arguments) == required.get(call.function.name, {"reason"})
    assert bool(reply.reasoning.strip()) == thinking


async def test_a_stream_ends_with_usage_and_done(tiny_engine: TinyEngine) -> None:
    body: Json = {
        "model": tiny_engine.model,
        "messages": [{"role": "user", "content": "My locker code is 482."}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "max_tokens": 32,
    }
    async with EngineClient(tiny_engine.openai_url, model=tiny_engine.model) as client, client.stream_raw(body) as raw:
        lines = (await raw.read()).decode().split("\n\n")
    events = [line.removeprefix("data: ") for line in lines if line]
    assert events[-1] == "[DONE]"
    last = json.loads(events[-2])
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] > 0


async def test_a_prompt_over_the_window_is_a_400_that_we_recognise(tiny_engine: TinyEngine) -> None:
    with pytest.raises(EngineError) as refused:
        await ask(tiny_engine, chat("word " * 5000))
    assert refused.value.http_status == 400


async def test_seeded_prompts_that_share_a_step_do_not_end_the_engine(tiny_engine: TinyEngine) -> None:
    """Together they are longer than a step, which then computes a part of the last one."""
    body: Json = {"model": tiny_engine.model, "max_tokens": 2, "temperature": 0.7, "seed": 1}

    async def complete(session: aiohttp.ClientSession, token: int) -> tuple[int, str]:
        prompt = [token] * (PROFILE.budget.window_tokens - 64)
        async with session.post(f"{tiny_engine.openai_url}/completions", json={**body, "prompt": prompt}) as answer:
            return answer.status, await answer.text()

    async with aiohttp.ClientSession() as session:
        answers = await asyncio.gather(*(complete(session, token) for token in range(5, 13)))
    assert [text for status, text in answers if status != 200] == []


async def test_an_unknown_model_is_a_404(tiny_engine: TinyEngine) -> None:
    async with EngineClient(tiny_engine.openai_url, model="nobody") as client:
        with pytest.raises(EngineError) as refused:
            await client.complete(chat("Hello."))
    assert refused.value.http_status == 404
