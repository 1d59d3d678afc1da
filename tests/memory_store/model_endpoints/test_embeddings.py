"""An embedding model behind real HTTP that errs, stalls, changes dimension, answers out of order or short."""

from collections.abc import Callable
from typing import Any

import pytest

from memloop.wire.errors import Unavailable
from memloop.wire.memory import MemoryDraft, StoreAdd
from memloop_clients import CircuitOpen
from memloop_clients.balancing.replica import Breaker
from memloop_clients.model_endpoint import EmbeddingsClient, InputRefused
from memloop_service import new_registry
from memory_store.embedding.endpoint_embedder import EndpointEmbedder, EndpointLimits
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from tests.fakes.embedder import HashingEncoder
from tests.fakes.model_endpoint import KEY, ModelEndpoint
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.model_endpoints.stores import TIMEOUTS, searched, store_on, texts, until


async def refused_add(store: StoreApi, text: str) -> tuple[int, Any]:
    """Status and code of an add that fails."""
    add = StoreAdd(namespace=ALICE, drafts=(MemoryDraft(key=text, value=text),))
    response = await store.http.post("/v1/items", content=add.model_dump_json())
    return response.status_code, response.json()["error"]["code"]


def embeddings(endpoint: ModelEndpoint, **options: Any) -> EmbeddingsClient:
    return EmbeddingsClient(endpoint.url, model="m", api_key=KEY, timeouts=TIMEOUTS, **options)


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
