"""What the stack asks of a chat endpoint, one function each; an AssertionError or a MemloopError is a refusal."""

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import orjson

from memloop.chunking import EstimatingSplitter
from memloop.loops.memreader import decide
from memloop.loops.memreread import reread_document
from memloop.loops.results import AddMemories
from memloop.ports import Prompt, Sampling
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import EngineError
from memloop.wire.memory import Source
from memloop_clients import EngineClient
from tests.fakes.strict_endpoint import LIMITED, MEMORY, RETRY_AFTER_S, TOO_LONG, StrictEndpoint
from tests.fakes.strict_shapes import words_of
from tests.memloop.reading import ListIndex

Cell: TypeAlias = Callable[[EngineClient, StrictEndpoint], Awaitable[None]]

_TURNS = (Source(role="user", content="I bought a red boat. I am Ann."),)


async def chat(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """A client's own body passes through."""
    body = {"model": endpoint.spec.model, "messages": [{"role": "user", "content": "Which boat?"}]}
    async with client.stream_raw(orjson.dumps(body)) as raw:
        assert raw.status == 200, await raw.read()
        assert "red boat" in str(await raw.read())
    assert endpoint.asked == [body]


async def stream(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """A client's own stream passes through, with its usage."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    body = {"model": endpoint.spec.model, "messages": [{"role": "user", "content": "Which boat?"}], **options}
    async with client.stream_raw(orjson.dumps(body)) as raw:
        assert raw.status == 200, await raw.read()
        events = (await raw.read()).decode().split("\n\n")
    assert json.loads(events[-3].removeprefix("data: "))["usage"]["total_tokens"] == 12
    assert events[-2] == "data: [DONE]"


async def write_with_tools(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """MemReader: a search, its result, a memory."""
    model = client.of_model(endpoint.spec.model)
    result = await decide(_TURNS, model=model, index=ListIndex(), profile=load_profile("default"))
    assert isinstance(result.decision, AddMemories), result.decision
    assert [draft.value for draft in result.decision.drafts] == [MEMORY]
    assert [record.action for record in result.records] == ["search", "add"]


async def write_without_tools(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """The extractor: one reply of JSON."""
    model = client.of_model(endpoint.spec.model)
    result = await decide(_TURNS, model=model, index=ListIndex(), profile=load_profile("extractor"))
    assert isinstance(result.decision, AddMemories), result.decision
    assert [draft.value for draft in result.decision.drafts] == [MEMORY]


async def long_read(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """MemReread: read, judge, answer."""
    chunks = EstimatingSplitter().split("Ann has a red boat. " * 40, chunk_tokens=100)
    model = client.of_model(endpoint.spec.model)
    result = await reread_document("Which boat?", chunks, model=model, profile=load_profile("default"), max_rereads=1)
    assert result.answer == "red"


async def error(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """A refusal that is about the prompt stays one, in the endpoint's own words, and nothing is learned from it."""
    caught = await _refused(client, endpoint, TOO_LONG)
    assert caught.engine_status == endpoint.spec.too_long.status
    assert words_of(endpoint.spec.too_long.body) in caught.message
    assert "{" not in caught.message, caught.message


async def rate_limit(client: EngineClient, endpoint: StrictEndpoint) -> None:
    """A 429 is asked once, and its pause is handed on."""
    caught = await _refused(client, endpoint, LIMITED)
    assert (caught.engine_status, caught.retry_after_s) == (429, RETRY_AFTER_S)
    assert "{" not in caught.message, caught.message
    assert len(endpoint.asked) == 1


async def _refused(client: EngineClient, endpoint: StrictEndpoint, text: str) -> EngineError:
    try:
        await client.of_model(endpoint.spec.model).complete(
            Prompt((ChatMessage(role="user", content=text),), Sampling(max_tokens=16))
        )
    except EngineError as caught:
        return caught
    raise AssertionError("the endpoint answered")


CELLS: tuple[Cell, ...] = (chat, write_with_tools, write_without_tools, long_read, stream, error, rate_limit)
