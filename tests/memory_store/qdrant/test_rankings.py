"""Searches give the same memories, scores and order on Qdrant Edge and on any number of shards."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from memloop.wire.memory import MemoryDraft, Namespace
from memory_store.settings import Settings
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.server_setup import ShardConfig
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.qdrant.cluster import Cluster

pytestmark = pytest.mark.slow

_USERS = 8
_FACTS = 25
_QUERIES = 500
_WITHIN = 1e-5
_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_WHO = ("Anna", "my sister", "the neighbour", "our captain", "Ben", "the old fisher")
_DID = ("painted", "sold", "found", "repaired", "lost", "photographed", "bought")
_HOW = ("blue", "green", "old", "broken", "tiny", "wooden", "borrowed")
_WHAT = ("boat", "harbour", "kite", "violin", "roof", "lantern", "bridge", "bicycle", "garden")
_WHEN = ("on Monday", "in spring", "before the storm", "after dinner", "last winter")

Results = list[list[tuple[str, float]]]


def talk(chance: random.Random) -> str:
    """A sentence of made-up talk."""
    parts = (_WHO, _DID, ("the", "a"), _HOW, _WHAT, _WHEN)
    return " ".join(chance.choice(words) for words in parts)


def _namespace(user: int) -> Namespace:
    return Namespace(tenant="t", user_id=f"user {user}")


def _queries() -> Sequence[tuple[int, str]]:
    chance = random.Random(7)
    words = [*_WHO, *_DID, *_HOW, *_WHAT, *_WHEN]
    return [(chance.randrange(_USERS), " ".join(chance.sample(words, chance.randint(1, 4)))) for _ in range(_QUERIES)]


async def _results(vectors: LiveCollection, settings: Settings) -> Results:
    """The ids and scores of all queries, on a new store."""
    chance = random.Random(3)
    async with serving(app_over(vectors, settings, clock=lambda: _NOW)) as http:
        for user in range(_USERS):
            drafts = [MemoryDraft(key=f"Story {number}", value=talk(chance)) for number in range(_FACTS)]
            await StoreApi(http, _namespace(user)).add_all(*drafts, timestamp=_NOW)
        return [
            [(hit.item.id, hit.score) for hit in await StoreApi(http, _namespace(user)).search(text, top_k=10)]
            for user, text in _queries()
        ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shards", [1, 3, 6])
async def test_searches_rank_the_same_on_edge_and_on_any_number_of_shards(
    cluster: Cluster, settings: Settings, shards: int
) -> None:
    expected = await _results(QdrantEdge(settings.data_dir, flush_s=60), settings)
    found = await _results(cluster.vectors(ShardConfig(shards=shards)), settings)

    assert sum(map(len, expected)) > 4 * _QUERIES
    for (user, text), one, other in zip(_queries(), expected, found, strict=True):
        case = f"user {user}, {text!r}"
        assert [item for item, _ in other] == [item for item, _ in one], case
        assert [score for _, score in other] == pytest.approx([score for _, score in one], abs=_WITHIN), case
