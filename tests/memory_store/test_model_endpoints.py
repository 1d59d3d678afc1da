"""Models behind real HTTP that errs, stalls, changes dimension, answers out of order or short."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from memloop.clients import CircuitOpen, Timeouts
from memloop.clients.balancing import Breaker
from memloop.clients.model_endpoint import EmbeddingsClient, InputRefused, RerankClient
from memloop.wire.errors import DependencyError, Unavailable
from memloop.wire.memory import MemoryDraft, SearchResult, StoreAdd, StoreSearch
from memloop_service import new_registry
from memory_store.embedding.endpoint_embedder import EmbeddingEndpointAway, EndpointEmbedder, EndpointLimits
from memory_store.main import adapters_of, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.schema import EmbeddingMismatch
from tests.fakes.embedder import HashingEncoder
from tests.fakes.model_endpoint import KEY, ModelEndpoint, model_endpoint
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.conftest import serving

_TIMEOUTS = Timeouts(connect_s=PATIENCE_S, read_s=PATIENCE_S, total_s=PATIENCE_S)


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with model_endpoint() as running:
        yield running


@pytest.fixture
def settings_with(endpoint: ModelEndpoint, redis_url: str, edge_folder: Path) -> Callable[..., Settings]:
    """Settings of a store whose models are at the endpoint, and which waits long for them."""

    def made(**changes: object) -> Settings:
        values: dict[str, object] = {
            "redis_url": redis_url,
            "data_dir": edge_folder,
            "embedding_model": "endpoint:stand-in",
            "embedding_url": endpoint.url,
            "embedding_api_key": KEY,
            "embedding_timeout_s": PATIENCE_S,
            "embedding_query_timeout_s": PATIENCE_S,
            "rerank_timeout_s": PATIENCE_S,
        }
        return Settings.model_validate(values | changes)

    return made


def reranking(endpoint: ModelEndpoint) -> dict[str, object]:
    """The settings of a reranker at the endpoint."""
    return {"rerank_model": "endpoint:judge", "rerank_url": endpoint.url, "rerank_api_key": KEY}


@asynccontextmanager
async def store_on(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncGenerator[StoreApi]:
    registry = registry or new_registry()
    metrics = Metrics(registry)
    async with serving(build(settings, adapters_of(settings, metrics), registry, metrics)) as http:
        yield StoreApi(http)


async def searched(store: StoreApi, query: str, **fields: object) -> SearchResult:
    """A search's whole answer."""
    asked = StoreSearch.model_validate({"namespace": ALICE, "query": query, **fields})
    response = await store.http.post("/v1/items/search", content=asked.model_dump_json())
    assert response.status_code == 200, response.text
    return SearchResult.model_validate_json(response.content)


def texts(found: SearchResult) -> list[str]:
    return [hit.item.memory for hit in found.results]


async def refused_add(store: StoreApi, text: str) -> tuple[int, Any]:
    """Status and code of an add that fails."""
    add = StoreAdd(namespace=ALICE, drafts=(MemoryDraft(key=text, value=text),))
    response = await store.http.post("/v1/items", content=add.model_dump_json())
    return response.status_code, response.json()["error"]["code"]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def embeddings(endpoint: ModelEndpoint, **options: Any) -> EmbeddingsClient:
    return EmbeddingsClient(endpoint.url, model="m", api_key=KEY, timeouts=_TIMEOUTS, **options)


def embedder_on(endpoint: ModelEndpoint, *, breaker: Breaker | None = None, **limits: Any) -> EndpointEmbedder:
    """An embedder that takes no pauses."""

    async def at_once(seconds: float) -> None:
        del seconds

    patient = EndpointLimits(timeout_s=PATIENCE_S, query_timeout_s=PATIENCE_S, **limits)
    breaker = breaker or Breaker(failures=1000, open_s=1.0, peer="embedding endpoint")
    metrics = Metrics(new_registry())
    return EndpointEmbedder(embeddings(endpoint), breaker, metrics=metrics, limits=patient, pause=at_once)


async def test_memories_are_found_by_vectors_of_the_endpoint(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await store.add("drink", "green tea")
        found = await searched(store, "green tea", explain=True)

    assert texts(found) == ["green tea"]
    assert not found.degraded
    assert found.results[0].score_breakdown["dense_score"] > 0.5
    assert {"model": "stand-in", "input": ["drink: green tea"], "encoding_format": "float"} in endpoint.embedded


async def test_vectors_that_come_out_of_order_belong_to_their_texts(endpoint: ModelEndpoint) -> None:
    endpoint.backwards = True

    found = await embeddings(endpoint).vectors(["one boat", "two cats"], within_s=PATIENCE_S)

    expected = HashingEncoder().encode(["one boat", "two cats"])
    assert [list(one) for one in found] == [pytest.approx(list(one)) for one in expected]


async def test_too_few_vectors_are_an_error_and_nothing_is_stored(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        endpoint.missing = 1
        status, _ = await refused_add(store, "green tea")
        endpoint.missing = 0
        found = await searched(store, "green tea")

    assert (status, texts(found)) == (502, [])


async def test_a_vector_is_asked_for_once(endpoint: ModelEndpoint) -> None:
    embedder = embedder_on(endpoint, cached=4)

    vector = await embedder.embed_query("tea")

    assert await embedder.embed(["tea", "tea"]) == [pytest.approx(vector)] * 2
    assert await embedder.embed_query("tea") == pytest.approx(vector)
    assert len(endpoint.embedded) == 1
    await embedder.close()


async def test_many_texts_go_in_batches(endpoint: ModelEndpoint) -> None:
    embedder = embedder_on(endpoint, max_batch=3)

    vectors = await embedder.embed([f"text {number}" for number in range(8)])

    assert len(vectors) == 8
    assert sorted(len(body["input"]) for body in endpoint.embedded) == [2, 3, 3]
    await embedder.close()


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_a_passing_failure_is_asked_again(endpoint: ModelEndpoint, status: int) -> None:
    endpoint.failures = [status, status]
    embedder = embedder_on(endpoint)

    assert len(await embedder.embed(["tea"])) == 1
    assert len(endpoint.embedded) == 3
    await embedder.close()


async def test_a_failure_that_lasts_ends_after_three_attempts(endpoint: ModelEndpoint) -> None:
    endpoint.status = 500
    embedder = embedder_on(endpoint)

    with pytest.raises(Unavailable):
        await embedder.embed(["tea"])

    assert len(endpoint.embedded) == 3
    await embedder.close()


async def test_a_text_that_is_too_long_for_the_model_is_embedded_by_its_beginning(endpoint: ModelEndpoint) -> None:
    endpoint.longest_chars = 300
    embedder = embedder_on(endpoint)
    long = "harbour " * 100

    short_vector, long_vector = await embedder.embed(["tea", long])

    assert [list(short_vector), list(long_vector)] == [
        pytest.approx(list(one)) for one in HashingEncoder().encode(["tea", long[:200]])
    ]
    await embedder.close()


async def test_an_endpoint_that_refuses_every_text_is_asked_a_few_times_only(endpoint: ModelEndpoint) -> None:
    endpoint.longest_chars = 0
    embedder = embedder_on(endpoint)

    with pytest.raises(InputRefused, match="context length"):
        await embedder.embed(["harbour " * 100] * 32)

    assert len(endpoint.embedded) < 10
    await embedder.close()


async def test_the_circuit_opens_after_failures_in_a_row_and_one_probe_closes_it(endpoint: ModelEndpoint) -> None:
    now = 0.0
    breaker = Breaker(failures=3, open_s=5.0, peer="embedding endpoint", clock=lambda: now)
    embedder = embedder_on(endpoint, breaker=breaker)
    endpoint.status = 500
    with pytest.raises(Unavailable):
        await embedder.embed(["one"])
    asked = len(endpoint.embedded)

    with pytest.raises(CircuitOpen) as refused:
        await embedder.embed_query("two")
    assert (len(endpoint.embedded), refused.value.code) == (asked, "embedding_endpoint_circuit_open")

    endpoint.status, now = 200, 6.0
    assert len(await embedder.embed(["three"])) == 1
    await embedder.close()


@pytest.mark.parametrize("fault", [{"status": 500}, {"dimension": 48}, {"missing": 1}, {"status": 401}], ids=str)
async def test_a_search_goes_by_words_while_the_endpoint_errs_and_by_meaning_afterwards(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings], fault: dict[str, int]
) -> None:
    healthy = {"status": 200, "dimension": 64, "missing": 0}
    registry = new_registry()
    async with store_on(settings_with(embedding_cache=0), registry) as store:
        await store.add("drink", "green tea")
        await store.add("pet", "a grey cat")
        for name, value in fault.items():
            setattr(endpoint, name, value)
        by_words = await searched(store, "Which tea?", threshold=0.9)
        for name, value in healthy.items():
            setattr(endpoint, name, value)
        by_meaning = await searched(store, "Which tea?")

    assert (texts(by_words)[0], by_words.degraded) == ("green tea", True)
    assert (texts(by_meaning)[0], by_meaning.degraded) == ("green tea", False)
    assert registry.get_sample_value("memory_store_searches_degraded_total", {"model": "embedding"}) == 1


async def test_a_search_does_not_wait_for_an_endpoint_that_stalls(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    settings = settings_with(embedding_query_timeout_s=0.5, embedding_cache=0)
    async with store_on(settings) as store:
        await store.add("drink", "green tea")
        endpoint.stalls = True
        by_words = await searched(store, "Which tea?")
        endpoint.stalls = False

        async def by_meaning() -> bool:
            return not (await searched(store, "Which tea?")).degraded

        await until(by_meaning)

    assert (texts(by_words)[0], by_words.degraded) == ("green tea", True)


async def test_a_question_without_a_word_to_search_by_finds_nothing_while_the_endpoint_errs(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await store.add("drink", "green tea")
        endpoint.status = 500
        found = await searched(store, "What is it?")

    assert (texts(found), found.degraded) == ([], True)


async def test_an_add_waits_for_the_endpoint_with_the_code_of_an_outage(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        endpoint.status = 500
        down = await refused_add(store, "green tea")
        endpoint.status = 200
        await store.add("green tea", "green tea")
        found = await searched(store, "green tea")

    assert down == (503, "unavailable")
    assert texts(found) == ["green tea"]


async def test_vectors_of_another_dimension_are_never_stored(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        endpoint.dimension = 48
        assert await refused_add(store, "green tea") == (502, "embedding_dimension_changed")
        endpoint.dimension = 64
        assert texts(await searched(store, "green tea")) == []


async def test_a_store_refuses_to_start_on_another_dimension_and_names_the_way_out(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    endpoint.dimension = 48
    with pytest.raises(EmbeddingMismatch, match=r"48 dimensions.*MEMLOOP_EMBEDDING_DIMENSION is 64.*reembed"):
        async with store_on(settings_with(embedding_dimension=64)):
            pass


async def test_a_store_refuses_to_start_when_the_stored_vectors_have_another_dimension(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await store.add("drink", "green tea")
    endpoint.dimension = 48
    with pytest.raises(EmbeddingMismatch, match=r"MEMLOOP_EMBEDDING_MODEL.*reembed"):
        async with store_on(settings_with()):
            pass


async def test_a_store_starts_without_its_endpoint_if_it_knows_the_dimension(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    settings = settings_with(embedding_dimension=64, embedding_timeout_s=5.0)
    async with store_on(settings) as store:
        await store.add("drink", "green tea")
    endpoint.status = 503
    async with store_on(settings) as store:
        by_words = await searched(store, "Which tea?")

    assert (texts(by_words)[0], by_words.degraded) == ("green tea", True)


async def test_a_store_that_does_not_know_the_dimension_needs_its_endpoint_to_start(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    endpoint.status = 503
    with pytest.raises(EmbeddingEndpointAway, match="MEMLOOP_EMBEDDING_DIMENSION"):
        async with store_on(settings_with(embedding_timeout_s=5.0)):
            pass


async def test_a_wrong_key_stops_the_start_with_the_settings_to_check(settings_with: Callable[..., Settings]) -> None:
    with pytest.raises(EmbeddingEndpointAway, match=r"401.*MEMLOOP_EMBEDDING_API_KEY"):
        async with store_on(settings_with(embedding_api_key="wrong")):
            pass


async def test_shorter_vectors_are_asked_for(endpoint: ModelEndpoint, settings_with: Callable[..., Settings]) -> None:
    async with store_on(settings_with(embedding_dimension=32, embedding_shorten=True)) as store:
        await store.add("drink", "green tea")

    assert {body["dimensions"] for body in endpoint.embedded} == {32}


async def test_memories_move_from_a_local_model_to_an_endpoint(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    endpoint.dimension = 48
    local = settings_with(embedding_model="endpoint:first")
    async with store_on(local) as store:
        await store.add("drink", "green tea")
        began = await store.http.post("/v1/admin/reembed", json={"model": "endpoint:second"})
        assert began.status_code == 202, began.text

        async def over() -> bool:
            return (await store.http.get("/v1/admin/collections")).json()["job"]["status"] == "completed"

        await until(over)
        assert texts(await searched(store, "green tea")) == ["green tea"]
    assert endpoint.embedded[-1]["model"] == "second"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"embedding_model": "endpoint:m"}, "MEMLOOP_EMBEDDING_URL"),
        ({"rerank_model": "endpoint:m"}, "MEMLOOP_RERANK_URL"),
        ({"rerank_url": "http://models/v1", "rerank_model": "local"}, "MEMLOOP_RERANK_MODEL"),
        ({"embedding_shorten": True}, "MEMLOOP_EMBEDDING_DIMENSION"),
    ],
)
def test_half_an_endpoint_is_refused_with_the_missing_setting(fields: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings.model_validate(fields)


async def three(store: StoreApi) -> None:
    for key, value in (("a", "tea tea tea"), ("b", "tea tea and milk"), ("c", "tea and a long list of yes yes")):
        await store.add(key, value)


async def test_the_order_of_the_endpoint_is_fused_with_the_own_one(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with()) as store:
        await three(store)
        own = await searched(store, "tea")
    async with store_on(settings_with(**reranking(endpoint))) as store:
        fused = await searched(store, "tea", explain=True)

    first, second, third = texts(own)
    assert third == "tea and a long list of yes yes"
    assert texts(fused) == [first, third, second]
    assert [hit.score for hit in fused.results] == pytest.approx([hit.score for hit in own.results])
    assert fused.results[1].score_breakdown["rerank_score"] == 2
    assert (endpoint.ranked[0]["model"], endpoint.ranked[0]["query"]) == ("judge", "tea")


async def test_scores_that_come_out_of_order_and_short_count_as_far_as_they_go(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with(**reranking(endpoint))) as store:
        await three(store)
        await searched(store, "tea")
        endpoint.backwards, endpoint.missing = True, 2  # the question's vector is kept
        found = await searched(store, "tea", explain=True)

    assert texts(found)[0] == "tea and a long list of yes yes"
    assert ["rerank_score" in hit.score_breakdown for hit in found.results] == [True, False, False]


async def test_at_most_so_many_candidates_are_judged(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings]
) -> None:
    async with store_on(settings_with(**reranking(endpoint), rerank_candidates=2)) as store:
        await three(store)
        found = await searched(store, "tea")

    assert len(endpoint.ranked[0]["documents"]) == 2
    assert len(found.results) == 3


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 400}, {"stalls": True}], ids=str)
async def test_a_search_keeps_its_order_while_the_reranking_endpoint_fails(
    endpoint: ModelEndpoint, settings_with: Callable[..., Settings], fault: dict[str, Any]
) -> None:
    async with store_on(settings_with()) as store:
        await three(store)
        own = await searched(store, "tea")
    async with store_on(settings_with(**reranking(endpoint), rerank_timeout_s=0.5)) as store:
        endpoint.well = "/v1/embeddings"
        for name, value in fault.items():
            setattr(endpoint, name, value)
        found = await searched(store, "tea")
        endpoint.stalls = False

    assert (texts(found), found.degraded) == (texts(own), True)


async def test_a_ranking_of_texts_that_were_not_sent_is_refused(endpoint: ModelEndpoint) -> None:
    client = RerankClient(endpoint.url, model="m", api_key=KEY, timeouts=_TIMEOUTS)
    endpoint.backwards = True

    assert await client.scores("tea", ["yes", "no"], within_s=PATIENCE_S) == {0: 1.0, 1: 0.0}
    endpoint.extra = True
    with pytest.raises(DependencyError, match="not asked about"):
        await client.scores("tea", ["yes", "no"], within_s=PATIENCE_S)
