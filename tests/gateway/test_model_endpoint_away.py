"""Memory while the store's embedding model, which is behind real HTTP, fails: nothing is lost, and searches go on."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memloop_service import new_registry
from memory_store.main import adapters_of, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from tests.fakes.asgi_server import running
from tests.fakes.job_engine import Body, Reply, add_memory
from tests.fakes.model_endpoint import KEY, ModelEndpoint, model_endpoint
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import Api, api
from tests.gateway.rig import eventually, script
from tests.gateway.running import CHAT


@asynccontextmanager
async def memory_behind(
    redis_url: str, folder: Path, answer: Callable[[Body], Reply]
) -> AsyncGenerator[tuple[Api, ModelEndpoint]]:
    """A gateway over a store whose embedding model is an endpoint; no worker."""
    async with model_endpoint() as endpoint:
        settings = Settings(
            redis_url=redis_url,
            data_dir=folder,
            embedding_model="endpoint:stand-in",
            embedding_url=endpoint.url,
            embedding_api_key=KEY,  # pyright: ignore[reportArgumentType] - pydantic makes it a secret
            embedding_timeout_s=1.0,
            embedding_query_timeout_s=PATIENCE_S,
        )
        registry = new_registry()
        metrics = Metrics(registry)
        async with (
            running(build(settings, adapters_of(settings, metrics), registry, metrics)) as url,
            api(redis_url, answer, store_url=url, sync_wait_s=0.05) as it,
        ):
            yield it, endpoint


async def found(it: Api, query: str) -> dict[str, Any]:
    answer = await it.post("/v1/memory/search", {"query": query, "user_id": "alice"})
    assert answer.status == 200, answer.raw
    return answer.json


async def test_a_text_waits_in_the_queue_until_the_endpoint_is_back(redis_url: str, tmp_path: Path) -> None:
    async with memory_behind(redis_url, tmp_path, script(500)) as (it, endpoint), it.rig.working():
        endpoint.status = 500
        text = {"messages": [{"role": "user", "content": "Tea at five."}], "user_id": "alice", "infer": False}
        answer = await it.post("/v1/memory/add", text)
        assert answer.status == 202, answer.raw
        waiting = await found(it, "tea")
        endpoint.status = 200
        event = await it.rig.event(answer.json["event_id"])
        stored = await found(it, "tea")

    assert [turn["content"] for turn in waiting["pending"]] == ["Tea at five."]
    assert waiting["degraded"]
    assert event.status == "completed"
    assert [hit["item"]["memory"] for hit in stored["results"]] == ["Tea at five."]


async def test_a_write_waits_while_the_endpoint_gives_another_dimension(redis_url: str, tmp_path: Path) -> None:
    decided = script(add_memory("Alice drinks tea."))
    async with memory_behind(redis_url, tmp_path, decided) as (it, endpoint), it.rig.working():
        endpoint.dimension, asked = 48, len(endpoint.embedded)
        event_id = await it.rig.write("I drink tea.")
        await eventually(lambda: len(endpoint.embedded) > asked)
        endpoint.dimension = 64
        event = await it.rig.event(event_id)
        stored = await found(it, "tea")

    assert event.status == "completed"
    assert [hit["item"]["memory"] for hit in stored["results"]] == ["Alice drinks tea."]


async def test_a_chat_recalls_by_words_and_states_it(redis_url: str, tmp_path: Path) -> None:
    async with memory_behind(redis_url, tmp_path, lambda _: "Fine.") as (it, endpoint):
        text = {"messages": [{"role": "user", "content": "Green tea at five."}], "user_id": "alice", "infer": False}
        assert (await it.post("/v1/memory/add", text)).json["status"] == "completed"
        endpoint.status = 500
        question = [{"role": "user", "content": "Which tea?"}]
        asked = {"model": "m", "messages": question, "memory": {"user_id": "alice", "mode": "read"}}
        memory = (await it.post(CHAT, asked)).json["memory"]

    assert len(memory["retrieved"]) == 1
    assert "did not respond" in memory["error"]
