"""Micro-batching, back-pressure and failures of the embedder, and the real default model."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from memloop.wire.errors import DependencyError, Unavailable
from memloop_service import new_registry
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.embedding.port import Encoder, Vector
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, SentenceEncoder, usable_threads
from memory_store.metrics import Metrics
from tests.fakes.embedder import HashingEncoder
from tests.fakes.processes import PATIENCE_S


def batching(
    encoder: Encoder, *, max_batch: int = 32, max_waiting: int = 2048, registry: CollectorRegistry | None = None
) -> BatchingEmbedder:
    metrics = Metrics(registry or new_registry())
    return BatchingEmbedder(lambda: encoder, metrics=metrics, max_batch=max_batch, max_waiting=max_waiting)


class Gate:
    """An encoder that waits to be let through; it fails for the text ``boom``."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.asked = threading.Event()

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.asked.set()
        self.open.wait(PATIENCE_S)
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        if "boom" in texts:
            raise ValueError("boom")
        return [(float(len(text)),) for text in texts]

    def shut(self) -> None:
        self.open.clear()
        self.asked.clear()


async def all_asked(gate: Gate) -> None:
    """Until every task that was begun waits for the encoder, which has a batch."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert await asyncio.to_thread(gate.asked.wait, PATIENCE_S)


async def test_a_text_that_was_embedded_lately_is_not_encoded_again() -> None:
    gate = Gate()
    embedder = BatchingEmbedder(lambda: gate, metrics=Metrics(new_registry()), cached=2)
    await embedder.start()
    first = await embedder.embed(["aa", "bbb"])
    gate.batches.clear()

    assert await embedder.embed(["bbb", "aa", "aa"]) == [first[1], first[0], first[0]]
    assert gate.batches == []
    await embedder.embed(["c"])  # the third text pushes out the one that was asked for longest ago
    await embedder.embed(["aa", "bbb"])
    assert gate.batches == [["c"], ["bbb"]]
    await embedder.close()


async def test_the_dimension_is_probed_at_the_start() -> None:
    embedder = batching(HashingEncoder(dimension=48))

    assert await embedder.start() == 48
    await embedder.close()


async def test_requests_that_arrive_while_the_encoder_is_busy_share_a_batch() -> None:
    gate = Gate()
    embedder = batching(gate)
    await embedder.start()
    gate.shut()
    first = asyncio.create_task(embedder.embed(["a"]))
    await all_asked(gate)
    others = [asyncio.create_task(embedder.embed(["bb"] * number)) for number in (1, 2, 3)]
    await all_asked(gate)
    gate.open.set()

    assert list(await first) == [(1.0,)]
    assert [len(one) for one in await asyncio.gather(*others)] == [1, 2, 3]
    assert [len(batch) for batch in gate.batches] == [1, 1, 6]
    assert len(gate.threads) == 1
    await embedder.close()


async def test_a_batch_stops_growing_at_its_limit() -> None:
    gate = Gate()
    embedder = batching(gate, max_batch=4)
    await embedder.start()
    gate.shut()
    requests = [asyncio.create_task(embedder.embed(["a", "b"])) for _ in range(5)]
    await all_asked(gate)
    gate.open.set()
    await asyncio.gather(*requests)

    assert max(len(batch) for batch in gate.batches) == 4
    await embedder.close()


@pytest.mark.parametrize("flood", ["text", "query"])
async def test_a_query_or_a_text_waits_for_one_batch_of_a_flood_of_the_other(flood: str) -> None:
    gate = Gate()
    embedder = batching(gate, max_batch=2)

    def asked(kind: str, text: str) -> "asyncio.Task[object]":
        return asyncio.create_task(embedder.embed_query(text) if kind == "query" else embedder.embed([text]))

    await embedder.start()
    gate.batches.clear()
    gate.shut()
    many = [asked(flood, f"flood {number}") for number in range(6)]
    await all_asked(gate)
    one = asked("query" if flood == "text" else "text", "one")
    await all_asked(gate)
    gate.open.set()
    await asyncio.gather(*many, one)
    await embedder.close()

    assert gate.batches.index(["one"]) == 1


async def test_texts_that_wait_take_no_room_of_queries() -> None:
    gate = Gate()
    embedder = batching(gate, max_waiting=2)
    await embedder.start()
    gate.shut()
    flood = asyncio.create_task(embedder.embed(["a", "b"]))
    await all_asked(gate)
    query = asyncio.create_task(embedder.embed_query("query"))
    await all_asked(gate)
    with pytest.raises(Unavailable):
        await embedder.embed(["c"])
    gate.open.set()
    assert await query == (5.0,)
    await flood
    await embedder.close()


async def test_too_many_waiting_texts_are_turned_away() -> None:
    gate, registry = Gate(), new_registry()
    embedder = batching(gate, max_waiting=3, registry=registry)
    await embedder.start()
    gate.shut()
    waiting = asyncio.create_task(embedder.embed(["a", "b"]))
    await all_asked(gate)

    with pytest.raises(Unavailable):
        await embedder.embed(["c", "d"])

    assert registry.get_sample_value("memory_store_embed_waiting_texts") == 2
    assert registry.get_sample_value("memory_store_embed_refused_total") == 2
    gate.open.set()
    assert len(await waiting) == 2
    assert len(await embedder.embed(["c", "d"])) == 2
    await embedder.close()


async def test_a_failure_reaches_its_callers_and_the_next_batch_works() -> None:
    embedder = batching(Gate())
    await embedder.start()

    with pytest.raises(DependencyError):
        await embedder.embed(["boom"])

    assert list(await embedder.embed(["ok"])) == [(2.0,)]
    await embedder.close()


async def test_a_caller_that_gives_up_does_not_disturb_the_others() -> None:
    gate = Gate()
    embedder = batching(gate)
    await embedder.start()
    gate.shut()
    gone, stays = (asyncio.create_task(embedder.embed([text])) for text in ("gone", "stays"))
    await all_asked(gate)
    gone.cancel()
    gate.open.set()

    assert list(await stays) == [(5.0,)]
    await embedder.close()


async def test_no_texts_need_no_encoder() -> None:
    assert list(await batching(Gate()).embed([])) == []


async def test_the_default_model_is_compiled_and_puts_like_meanings_close(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    embedder = BatchingEmbedder(
        lambda: SentenceEncoder(DEFAULT_MODEL, threads=1, batch=32), metrics=Metrics(new_registry())
    )

    assert await embedder.start() == 384
    assert [record for record in caplog.records if record.name.startswith("memory_store")] == []

    cat, kitten, tax = await embedder.embed(["a cat sleeps", "a kitten is asleep", "the tax office is closed"])
    assert _dot(cat, cat) == pytest.approx(1.0, abs=1e-5)
    assert _dot(cat, kitten) > 0.6 > 0.3 > _dot(cat, tax)
    await embedder.close()


def test_half_the_precision_turns_the_vectors_by_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    texts = [f"{'Anna told Bob about it. ' * (number % 3)}On day {number} she sold a boat." for number in range(8)]

    whole = SentenceEncoder(DEFAULT_MODEL, threads=1, batch=3, precision="float32").encode(texts)
    half = SentenceEncoder(DEFAULT_MODEL, threads=1, batch=3, precision="bfloat16").encode(texts)

    assert all(_dot(one, other) > 0.9995 for one, other in zip(whole, half, strict=True))
    assert _dot(whole[0], half[1]) < 0.99


def _dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("allowed", "threads"), [("1", range(1, 2)), ("64", range(1, 5))], ids=["one core", "many"])
def test_a_thread_a_core_that_the_process_may_use_and_four_at_most(
    monkeypatch: pytest.MonkeyPatch, allowed: str, threads: range
) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", allowed)  # joblib's own limit, beside the machine's and the container's
    assert usable_threads() in threads
