"""A chat against the real memory store: real HTTP, real Redis, real Qdrant Edge, an encoder without a model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.settings import GatewaySettings
from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd
from memloop_clients import StoreClient
from memloop_service import new_registry
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.asgi_server import running
from tests.fakes.embedder import HashingEncoder
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.running import Answer, Gateway, running_gateway


@pytest.fixture
async def real_store(redis_url: str, tmp_path: Path) -> AsyncGenerator[str]:
    """The base URL of a running store."""
    registry = new_registry()
    metrics = Metrics(registry)
    settings = Settings(redis_url=redis_url, data_dir=tmp_path, embedding_model="hashing")
    embedder = BatchingEmbedder(HashingEncoder, metrics=metrics)
    adapters = Adapters(QdrantEdge(tmp_path, flush_s=60), embedder, connect(redis_url))
    async with running(build(settings, adapters, registry, metrics)) as url:
        yield url


@pytest.fixture
async def gateway(settings: GatewaySettings, real_store: str) -> AsyncGenerator[Gateway]:
    """A gateway on that store."""
    async with running_gateway(settings.model_copy(update={"store_url": real_store})) as running:
        yield running


async def _keep(store: StoreClient, namespace: Namespace, text: str) -> str:
    result = await store.add(StoreAdd(namespace=namespace, drafts=(MemoryDraft(key=text, value=text),)))
    return result.results[0].item.id


async def test_chat_recalls_the_callers_own_memories_only(gateway: Gateway, engine: FakeEngine) -> None:
    store = gateway.memory.store
    mine = await _keep(store, Namespace(tenant="local", user_id="u1"), "The user drinks green tea.")
    await _keep(store, Namespace(tenant="local", user_id="u2"), "The user drinks black tea.")
    await _keep(store, Namespace(tenant="other", user_id="u1"), "The user drinks red tea.")
    answer = await gateway.chat("Which tea does the user drink?", memory={"user_id": "u1", "mode": "read"})
    assert _told(answer) == ([mine], None, None)
    assert "green tea" in engine.last.json["messages"][0]["content"]


async def test_long_texts_that_begin_alike_are_all_kept(gateway: Gateway) -> None:
    letter = "Dear customer, thank you for your message. " * 20
    for ending in ("Your order was shipped.", "Your refund was paid.", "Your order was shipped."):
        body = {"user_id": "u1", "infer": False, "messages": [{"role": "user", "content": letter + ending}]}
        assert (await gateway.post("/v1/memory/add", body)).status == 200
    kept = (await gateway.get("/v1/memory?user_id=u1")).json["items"]
    assert sorted(item["memory"][len(letter) :] for item in kept) == [
        "Your order was shipped.",
        "Your refund was paid.",
    ]


async def test_readiness_checks_the_store(gateway: Gateway) -> None:
    assert (await gateway.get("/readyz")).json["dependencies"]["store"] == "ok"


def _told(answer: Answer) -> tuple[object, object, object]:
    told = answer.json["memory"]
    return told["retrieved"], told["write_event_id"], told["error"]
