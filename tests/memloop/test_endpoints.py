"""Endpoint × what the stack asks of it, against stand-ins that refuse as the public API documents say."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from memloop.ports import Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import EngineError, Unavailable
from memloop_clients import DialectName, EngineClient
from memloop_clients.dialects import MOST_CHANGES
from memloop_clients.endpoints import ENDPOINTS
from tests.fakes import strict_shapes as shape
from tests.fakes.redis_server import free_port
from tests.fakes.strict_endpoint import StrictEndpoint, strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS, Spec, no_forced_tool
from tests.memloop.endpoint_cells import CELLS, Cell

PROMPT = Prompt((ChatMessage(role="user", content="Which boat?"),), Sampling(max_tokens=16))
BY_NAME = {spec.name: spec for spec in SPECS}


@asynccontextmanager
async def at(spec: Spec, dialect: DialectName = "auto") -> AsyncGenerator[tuple[EngineClient, StrictEndpoint]]:
    key = "k" if spec.headers else None
    async with (
        strict_endpoint(spec) as endpoint,
        EngineClient(endpoint.url, model=spec.model, api_key=key, dialect=dialect) as client,
    ):
        yield client, endpoint


SMALLEST: Body = {"messages": [{"role": "user", "content": "Which boat?"}]}
"""A chat that every endpoint answers."""
TOOL: Body = {"type": "function", "function": {"name": "search_memory", "parameters": {"type": "object"}}}
VLLMS: dict[str, Body] = {
    "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": False}},
    "max_tokens": {"max_tokens": 16},
    "temperature": {"temperature": 0.2},
    "top_p": {"top_p": 0.95},
    "temperature and top_p": {"temperature": 0.2, "top_p": 0.95},
    "tools": {"tools": [TOOL]},
    "a forced tool": {"tools": [TOOL], "tool_choice": "required"},
    "a named tool": {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "search_memory"}}},
}
"""Parts of the one request that loops write."""
_REASONING = ("chat_template_kwargs", "max_tokens", "temperature", "top_p", "temperature and top_p")
_TOOLS = ("tools", "a forced tool", "a named tool")
REFUSED: dict[str, tuple[str, ...]] = {
    "openai": ("chat_template_kwargs",),
    "openai o-series": _REASONING,
    "openai gpt-5.4": _REASONING,
    "openai gpt-5.6": (*_REASONING, *_TOOLS),
    "azure deployment": ("chat_template_kwargs",),
    "azure deployment, old version": ("chat_template_kwargs",),
    "azure v1": ("chat_template_kwargs",),
    "azure v1, reasoning": _REASONING,
    "anthropic 4.5": ("chat_template_kwargs", "temperature and top_p"),
    "anthropic 4.7": ("chat_template_kwargs", "temperature", "top_p", "temperature and top_p", "a forced tool"),
    "gemini 2.5": ("chat_template_kwargs",),
    "gemini 3": ("chat_template_kwargs",),
    "lmstudio": ("a named tool",),
    "openrouter": ("a forced tool", "a named tool"),
    "another server, strict": ("chat_template_kwargs",),
}
"""What each endpoint refuses of it. The others take it all."""


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.__name__)
@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.certain], ids=lambda spec: spec.name)
async def test_an_endpoint_serves_it_when_nothing_is_set(spec: Spec, cell: Cell) -> None:
    async with at(spec) as (client, endpoint):
        await cell(client, endpoint)


@pytest.mark.parametrize(
    ("name", "part"), [(name, part) for name, parts in REFUSED.items() for part in parts], ids=lambda value: value
)
async def test_what_an_endpoint_refuses_of_vllms_form_its_dialect_sends_otherwise(name: str, part: str) -> None:
    body = SMALLEST | VLLMS[part] | {"model": BY_NAME[name].model}
    async with at(BY_NAME[name], BY_NAME[name].dialect) as (client, _):
        with pytest.raises(EngineError) as refused:
            await client.post_json("chat/completions", body)
        assert refused.value.engine_status in {400, 404, 422}
        assert (await client.chat(body))["choices"]


@pytest.mark.parametrize("name", [spec.name for spec in SPECS if "api-key" in spec.headers])
async def test_azure_refuses_a_bearer_and_takes_its_own_header(name: str) -> None:
    body = SMALLEST | {"model": BY_NAME[name].model}
    async with at(BY_NAME[name], "openai") as (client, _):
        with pytest.raises(EngineError, match="401"):
            await client.chat(body)
    async with at(BY_NAME[name], "azure") as (client, _):
        assert (await client.chat(body))["choices"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
async def test_an_endpoint_takes_the_rest_of_vllms_form(spec: Spec) -> None:
    async with at(spec, spec.dialect) as (client, endpoint):
        for part in VLLMS.keys() - set(REFUSED.get(spec.name, ())):
            await client.post_json("chat/completions", SMALLEST | VLLMS[part] | {"model": spec.model})
    assert not endpoint.refusals


@pytest.mark.parametrize("name", ["ollama", "llama.cpp", "lmstudio", "vllm", "sglang"])
async def test_a_local_server_is_recognised_by_its_list_of_models(name: str) -> None:
    async with at(replace(BY_NAME[name], probes={})) as (client, endpoint):
        assert await client.dialect("m") is ENDPOINTS[name].dialect
        await client.complete(PROMPT)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("name", ["ollama", "llama.cpp", "vllm", "sglang"])
async def test_a_local_server_is_recognised_by_a_path_of_its_own(name: str) -> None:
    async with at(replace(BY_NAME[name], owner=None)) as (client, _):
        assert await client.dialect("m") is ENDPOINTS[name].dialect


async def test_an_endpoint_that_was_gone_is_recognised_once_it_is_there() -> None:
    port = free_port()
    async with EngineClient(f"http://127.0.0.1:{port}/v1", model="m") as client:
        with pytest.raises(Unavailable):
            await client.complete(PROMPT)
        assert (await client.dialect("m")).name == "any"
        async with strict_endpoint(BY_NAME["vllm"], port=port):
            await client.complete(PROMPT)
            assert (await client.dialect("m")).name == "vllm"


async def test_what_was_learned_is_remembered_for_that_model_alone_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="memloop_clients.dialects")
    async with at(BY_NAME["openai o-series"]) as (client, endpoint):
        for _ in range(3):
            await client.complete(PROMPT)
        assert len(endpoint.refusals) == 4
        assert len(endpoint.asked) == 7
        assert await client.dialect("another") != await client.dialect("o4-mini")
    (record,) = caplog.records
    said = record.getMessage()
    assert "model o4-mini: left out chat_template_kwargs, temperature, top_p" in said
    assert "max_completion_tokens" in said
    assert "MEMLOOP_ENGINE_DIALECT" in said


async def test_calls_at_the_same_time_learn_once() -> None:
    async with at(BY_NAME["openai o-series"]) as (client, endpoint):
        await client.dialect("o4-mini")
        await asyncio.gather(*(client.complete(PROMPT) for _ in range(30)))
    assert len(endpoint.refusals) <= 30 + 3
    assert len(endpoint.asked) - len(endpoint.refusals) == 30


def refusing_all(*names: str) -> Callable[[Body], Refused | None]:
    """Refuses these fields one by one."""

    def rule(body: Body) -> Refused | None:
        found = next((name for name in names if name in body), None)
        return shape.unsupported_parameter(found) if found else None

    return rule


async def test_a_field_that_is_refused_under_both_names_is_an_error_after_one_change() -> None:
    rules = (refusing_all("max_tokens", "max_completion_tokens"),)
    async with at(replace(BY_NAME["vllm"], rules=rules)) as (client, endpoint):
        for asked in (2, 4):
            with pytest.raises(EngineError, match="not supported"):
                await client.complete(PROMPT)
            assert len(endpoint.asked) == asked


async def test_the_changes_of_one_call_are_bounded() -> None:
    names = ("chat_template_kwargs", "max_tokens", "seed", "temperature", "top_p", "max_completion_tokens")
    async with at(replace(BY_NAME["vllm"], rules=(refusing_all(*names),))) as (client, endpoint):
        with pytest.raises(EngineError, match="not supported"):
            await client.ask(PROMPT, model="m", seed=3)
    assert len(endpoint.asked) == MOST_CHANGES + 1


async def test_a_tool_that_cannot_be_forced_is_offered() -> None:
    async with at(replace(BY_NAME["vllm"], rules=(no_forced_tool,))) as (client, endpoint):
        await client.complete(replace(PROMPT, tools=({"type": "function"},), tool_choice="required"))
    assert [body["tool_choice"] for body in endpoint.asked] == ["required", "auto"]
