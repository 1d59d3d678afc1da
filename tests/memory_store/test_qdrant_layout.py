"""A user's memories lie on one shard of a Qdrant server. The real client, over HTTP, against a stand-in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue
from qdrant_client import AsyncQdrantClient, models

from memloop.wire.memory import Namespace
from memory_store.embedding.encoding import Bm25
from memory_store.items.documents import of_tenant, within
from memory_store.vectors.filters import AllOf, Condition, Equals, Ids, Not, OneOf, all_of
from memory_store.vectors.port import Collection, Point
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_setup import ONE_NODE, ShardConfig
from tests.fakes.qdrant_server import QdrantStandIn

_SPEC = CollectionSpec("m", 4)
_BM25 = Bm25()
_USERS = [f"user {number}" for number in range(12)]
_DENSE = (1.0, 0.0, 0.0, 0.0)


def _client(url: str) -> AsyncQdrantClient:
    return AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)


@asynccontextmanager
async def opened(server: QdrantStandIn, sharding: ShardConfig = ONE_NODE) -> AsyncGenerator[QdrantServer]:
    async with server.running() as url:
        vectors = QdrantServer(_client(url), sharding)
        await vectors.open(_SPEC)
        yield vectors
        await vectors.close()


def point(number: int, user: str, text: str = "blue harbour", **payload: JsonValue) -> Point:
    fields = {"tenant": "t", "user_id": user, "created_at": "2026-01-01T00:00:00Z", "place": number, **payload}
    return Point(_id(number), _DENSE, _BM25.document(text), fields)


def _id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def of_user(user: str) -> Condition:
    return within(Namespace(tenant="t", user_id=user))


async def every_read(vectors: Collection, where: Condition) -> None:
    """One request of each kind."""
    await vectors.get([_id(1)], where=where)
    await vectors.scroll(where=where, limit=9)
    await vectors.newest(where=where, limit=9)
    await vectors.placed(where=where, limit=9)
    await vectors.values("speaker", where=where, limit=9)
    await vectors.nearest(_DENSE, where=where, limit=9)
    await vectors.rank([_DENSE, _BM25.query("blue")], where=where, corpus=where, limit=9)
    await vectors.count(where=where)


async def test_every_request_of_a_user_asks_the_one_shard_that_holds_the_user() -> None:
    server = QdrantStandIn(nodes=3)
    async with opened(server) as vectors:
        shards = server.collections[_SPEC.name]
        keys: set[str | int] = set()
        for number, user in enumerate(_USERS[:4]):
            shards.asked.clear()
            await vectors.upsert([point(number, user)])
            await every_read(vectors, of_user(user))
            await vectors.delete(where=all_of([of_user(user), Equals("status", "deleted")]))
            assert len(shards.asked) == 11
            [[key]] = {tuple(asked or ()) for asked in shards.asked}
            keys.add(key)
            assert await vectors.count(where=of_user(user)) == 1

    assert set(shards.shards) == {f"users-{number}" for number in range(6)}
    assert len(keys) > 1


async def test_a_request_across_users_asks_every_shard() -> None:
    server = QdrantStandIn(nodes=3)
    async with opened(server) as vectors:
        shards = server.collections[_SPEC.name]
        await vectors.upsert([point(number, user) for number, user in enumerate(_USERS)])
        shards.asked.clear()
        await every_read(vectors, of_tenant("t"))
        assert shards.asked == [None] * 9
        assert await vectors.count(where=AllOf(())) == len(_USERS)

        await vectors.delete(where=Ids((_id(0), _id(1), _id(2), _id(3))))
        assert await vectors.count(where=of_tenant("t")) == len(_USERS) - 4
        await vectors.delete(where=of_tenant("t"))
        assert [shard.count("points").count for shard in shards.shards.values()] == [0] * 6


async def test_a_request_of_two_users_asks_their_shards() -> None:
    server = QdrantStandIn(nodes=3)
    async with opened(server) as vectors:
        await vectors.upsert([point(number, user) for number, user in enumerate(_USERS)])
        asked = server.collections[_SPEC.name].asked
        asked.clear()
        some = all_of([of_tenant("t"), OneOf("user_id", tuple(_USERS[:2]))])
        found = await vectors.scroll(where=some, limit=9)

    assert [one.payload["user_id"] for one in found.found] == _USERS[:2]
    assert 1 <= len(asked[0] or ()) <= 2


@pytest.mark.parametrize("nodes", [0, 3])
async def test_conditions_beside_tenant_and_user_still_hold(nodes: int) -> None:
    async with opened(QdrantStandIn(nodes=nodes)) as vectors:
        await vectors.upsert([point(1, "a", run_id="r"), point(2, "a"), point(3, "b"), point(4, "a", tenant="other")])

        async def found(*conditions: Condition) -> list[str]:
            page = await vectors.scroll(where=all_of([of_user("a"), *conditions]), limit=9)
            return [one.id for one in page.found]

        assert await found() == [_id(1), _id(2)]
        assert await found(Equals("run_id", "r")) == [_id(1)]
        assert await found(Not(Equals("run_id", "r"))) == [_id(2)]
        assert await found(Equals("user_id", "b")) == []
        assert await found(Equals("tenant", "other")) == []


async def test_two_owners_that_read_alike_are_kept_apart() -> None:
    async with opened(QdrantStandIn()) as vectors:
        await vectors.upsert([point(1, "b/c", tenant="a"), point(2, "c", tenant="a/b")])
        page = await vectors.scroll(where=within(Namespace(tenant="a", user_id="b/c")), limit=9)

    assert [one.id for one in page.found] == [_id(1)]


async def test_payloads_come_back_without_the_field_of_the_adapter() -> None:
    async with opened(QdrantStandIn()) as vectors:
        stored = point(1, "a")
        await vectors.upsert([stored])
        [back] = await vectors.get([stored.id], where=AllOf(()))
        [nearest] = await vectors.nearest(_DENSE, where=AllOf(()), limit=1)

    assert back.payload == nearest.payload == stored.payload


async def test_the_number_of_shard_keys_is_the_one_that_is_asked_for() -> None:
    server = QdrantStandIn(nodes=3)
    async with opened(server, ShardConfig(shards=2, replicas=2, write_consistency=2)):
        made = server.collections[_SPEC.name]

    assert sorted(map(str, made.shards)) == ["users-0", "users-1"]
    assert (made.params.shard_number, made.params.replication_factor, made.params.write_consistency_factor) == (1, 2, 2)


async def test_a_server_that_is_not_distributed_has_one_shard_without_a_key() -> None:
    server = QdrantStandIn()
    async with opened(server, ShardConfig(shards=6)) as vectors:
        await vectors.upsert([point(number, user) for number, user in enumerate(_USERS)])
        await every_read(vectors, of_user(_USERS[0]))

    made = server.collections[_SPEC.name]
    assert list(made.shards) == [0]
    assert set(map(str, made.asked)) == {"None"}


async def test_the_owner_is_the_tenant_index() -> None:
    server = QdrantStandIn()
    async with opened(server):
        made = server.indexes[_SPEC.name]

    schemas = {name: models.CreateFieldIndex.model_validate(index).field_schema for name, index in made.items()}
    assert [name for name, schema in schemas.items() if getattr(schema, "is_tenant", False)] == ["owner"]
    assert next(iter(made)) == "owner"


async def test_the_graph_of_a_new_collection_is_built_within_each_user() -> None:
    server = QdrantStandIn()
    async with opened(server) as vectors:
        graph = server.collections[vectors.name].params.hnsw_config

    assert graph is not None
    assert graph.m == 0
    assert graph.payload_m == 16
