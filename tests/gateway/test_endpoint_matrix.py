"""Endpoint × call, over HTTP through gateway, worker and store, against stand-ins that refuse as the real ones do."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

import pytest
import pytest_asyncio

from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.redis_server import RedisServer
from tests.fakes.strict_endpoint import LIMITED, MEMORY, RETRY_AFTER_S, TOO_LONG
from tests.fakes.strict_shapes import Body, words_of
from tests.fakes.strict_specs import SPECS, Spec
from tests.gateway.endpoint_rows import Rows, all_rows, model_of
from tests.gateway.long_reads import PATH
from tests.gateway.running import CHAT, Answer

Cell: TypeAlias = Callable[[Rows, Spec], Awaitable[None]]
TURN = {"role": "user", "content": "I bought a red boat. I am Ann."}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rows(
    redis_server: RedisServer | RedisClusterServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rows]:
    redis_server.flush()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY_OF_ENDPOINT", "k")
        async with all_rows(redis_server.url, tmp_path_factory.mktemp("rows")) as running:
            yield running


async def asked(rows: Rows, spec: Spec, text: str = "Which boat?", **fields: object) -> Answer:
    """A chat's answer by the endpoint's model; without memory, unless the fields name one."""
    body = {"model": model_of(spec), "messages": [{"role": "user", "content": text}], "memory": {"mode": "off"}}
    return await rows.gateway.post(CHAT, body | fields)


def a_read(spec: Spec, question: str = "Which boat?") -> Body:
    """A read of two chunks by the endpoint's model that judges once."""
    document = {"text": "Ann has a red boat. " * 40}
    options = {"strategy": "memreread", "max_rereads": 1, "chunk_tokens": 200}
    return {"model": model_of(spec), "question": question, "document": document, **options}


async def chat(rows: Rows, spec: Spec) -> None:
    """A client's own body passes through under the engine's name of the model, without our field."""
    endpoint = rows.endpoint(spec)
    answer = await asked(rows, spec)
    assert (answer.status, "red boat" in str(answer.json["choices"])) == (200, True), answer.raw
    assert endpoint.asked == [{"model": spec.model, "messages": [{"role": "user", "content": "Which boat?"}]}]


async def stream(rows: Rows, spec: Spec) -> None:
    """A client's own stream passes through, with its usage."""
    answer = await asked(rows, spec, stream=True, stream_options={"include_usage": True})
    assert answer.status == 200, answer.raw
    assert "red boat" in answer.streamed_text
    assert answer.chunks[-1]["usage"]["total_tokens"] == 12
    assert answer.events[-1] == b"data: [DONE]"


async def write_with_tools(rows: Rows, spec: Spec) -> None:
    """MemReader after a chat: a search, its result, a memory."""
    user = {"user_id": f"chat:{model_of(spec)}"}
    async with rows.writing(spec, profile="default"):
        answer = await asked(rows, spec, TURN["content"], memory={"sync": True, **user})
    assert (answer.status, answer.json["memory"]["error"]) == (200, None), answer.raw
    await _expect_remembered(rows, answer.json["memory"]["write"], user, actions=["search", "add"])


async def write_without_tools(rows: Rows, spec: Spec) -> None:
    """The extractor after an add: one reply of JSON."""
    user = {"user_id": f"add:{model_of(spec)}"}
    async with rows.writing(spec, profile="extractor"):
        answer = await rows.gateway.post("/v1/memory/add", {"messages": [TURN], "sync": True, **user})
    await _expect_remembered(rows, answer.json, user, actions=["add"])


async def _expect_remembered(rows: Rows, event: Body, user: Body, *, actions: list[str]) -> None:
    """The write has ended with these decisions, and a search finds its memory."""
    assert (event["status"], event["error"]) == ("completed", None)
    assert [decision["action"] for decision in event["decisions"]] == actions
    found = (await rows.gateway.post("/v1/memory/search", {"query": "boat", **user})).json
    assert [hit["item"]["memory"] for hit in found["results"]] == [MEMORY]


async def long_read(rows: Rows, spec: Spec) -> None:
    """MemReread: read, judge, answer."""
    answer = await rows.gateway.post(PATH, a_read(spec))
    assert (answer.status, answer.json["status"], answer.json["output_text"]) == (200, "completed", "red"), answer.raw


async def error(rows: Rows, spec: Spec) -> None:
    """A refusal that is about the prompt reaches the client in the endpoint's own words, of a chat and of a read."""
    refused = await asked(rows, spec, TOO_LONG)
    assert refused.status == spec.too_long.status
    assert refused.error["code"] == "context_length_exceeded"
    read = await rows.gateway.post(PATH, a_read(spec, TOO_LONG))
    for said in (refused.error["message"], read.error["message"]):
        assert words_of(spec.too_long.body) in said
        assert "{" not in said


async def rate_limit(rows: Rows, spec: Spec) -> None:
    """A 429 is asked once, and its pause is handed on, to a chat and to a read."""
    for asking in (asked(rows, spec, LIMITED), rows.gateway.post(PATH, a_read(spec, LIMITED))):
        endpoint = rows.endpoint(spec)
        limited = await asking
        assert (limited.status, limited.headers["Retry-After"]) == (429, str(RETRY_AFTER_S)), limited.raw
        assert "{" not in limited.error["message"]
        assert len(endpoint.asked) == 1


CELLS: tuple[Cell, ...] = (chat, write_with_tools, write_without_tools, long_read, stream, error, rate_limit)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.__name__)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
async def test_an_endpoint_serves_it(rows: Rows, spec: Spec, cell: Cell) -> None:
    await cell(rows, spec)
