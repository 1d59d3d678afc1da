"""OpenAI's own client against ``/v1/vector_stores``, on the real memory store."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from openai import APIStatusError, BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError

from gateway.memory.operations import erase
from gateway.queue import LaneQueue
from memloop.wire.errors import MemloopError, NotFound, RateLimited, Unavailable
from memloop.wire.memory import Namespace
from tests.gateway.file_searches import KEYS, TEA, Searches, searches
from tests.gateway.redis_view import keys
from tests.gateway.rig import eventually, script


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[Searches]:
    """A gateway with a worker."""
    async with searches(redis_url, tmp_path, script("Hello.")) as found, found.working():
        yield found


async def test_a_vector_store_is_made_listed_changed_and_deleted(it: Searches) -> None:
    stores = it.sdk.vector_stores
    made = await stores.create(
        name="notes", metadata={"of": "alice"}, expires_after={"anchor": "last_active_at", "days": 2}
    )
    assert (made.object, made.name, made.status, made.metadata) == (
        "vector_store",
        "notes",
        "completed",
        {"of": "alice"},
    )
    assert (made.file_counts.total, made.usage_bytes) == (0, 0)
    assert made.expires_at == (made.last_active_at or 0) + 2 * 24 * 3600
    other = await stores.create(name="more")
    assert [one.id async for one in stores.list(limit=1)] == [other.id, made.id]
    assert [one.id async for one in stores.list(order="asc")] == [made.id, other.id]
    changed = await stores.update(made.id, name="books")
    assert (changed.name, changed.metadata, changed.expires_after) == ("books", {"of": "alice"}, made.expires_after)
    assert (await stores.delete(made.id)).deleted
    with pytest.raises(NotFoundError):
        await stores.retrieve(made.id)


async def test_a_deleted_vector_store_gets_no_more_files(it: Searches) -> None:
    records = it.gateway.app.state.vector_stores.records
    made = await it.sdk.vector_stores.create(name="notes")
    await it.sdk.vector_stores.delete(made.id)
    with pytest.raises(NotFound):
        await records.used("a", made.id)
    assert await keys(it.gateway.redis, f"*{made.id}*") == []


async def test_changes_while_a_vector_store_is_deleted_do_not_bring_it_back(it: Searches) -> None:
    stores = it.sdk.vector_stores
    for _ in range(20):
        made = await stores.create(name="notes")
        changes = [stores.update(made.id, name=f"{number}") for number in range(5)]
        await asyncio.gather(stores.delete(made.id), *changes, return_exceptions=True)
        assert await keys(it.gateway.redis, f"*{made.id}*") == []


async def test_each_of_several_changes_at_once_is_kept(it: Searches) -> None:
    stores = it.sdk.vector_stores
    made = await stores.create(name="old", metadata={"of": "alice"})
    for number in range(10):
        expiry: Any = {"anchor": "last_active_at", "days": number + 1}
        metadata = {"round": f"{number}"}
        await asyncio.gather(
            stores.update(made.id, name=f"name {number}"),
            stores.update(made.id, metadata=metadata),
            stores.update(made.id, expires_after=expiry),
            *(stores.search(made.id, query="key") for _ in range(3)),
        )
        kept = await stores.retrieve(made.id)
        assert kept.expires_after is not None
        assert (kept.name, kept.metadata, kept.expires_after.days) == (f"name {number}", metadata, number + 1)


async def test_a_use_does_not_bring_back_an_end_that_was_taken_away_meanwhile(it: Searches) -> None:
    stores, redis = it.sdk.vector_stores, it.gateway.redis
    expiry: Any = {"anchor": "last_active_at", "days": 1}
    made = await stores.create(name="notes", expires_after=expiry)
    for _ in range(20):
        await stores.update(made.id, expires_after=expiry)
        await asyncio.gather(
            stores.update(made.id, expires_after=None), *(stores.search(made.id, query="key") for _ in range(5))
        )
        assert (await stores.retrieve(made.id)).expires_at is None
        assert await keys(redis, "*stores-ending") == []


async def test_an_attached_file_is_indexed_found_and_taken_out(it: Searches) -> None:
    store_id, [keys, tea] = await it.store_of(KEYS, TEA)
    found = await it.sdk.vector_stores.retrieve(store_id)
    assert (found.status, found.file_counts.completed, found.usage_bytes) == ("completed", 2, len(KEYS) + len(TEA))
    page = await it.sdk.vector_stores.search(store_id, query="Where is the spare key of the boat house?")
    best = page.data[0]
    assert (best.file_id, best.filename, best.content[0].text) == (keys, "0.txt", KEYS)
    assert 0 < best.score <= 1
    assert [one.id async for one in it.sdk.vector_stores.files.list(store_id, order="asc")] == [keys, tea]
    assert (await it.sdk.vector_stores.files.delete(keys, vector_store_id=store_id)).deleted
    left = await it.sdk.vector_stores.search(store_id, query="Where is the spare key of the boat house?")
    assert {one.file_id for one in left.data} == {tea}
    assert (await it.sdk.files.retrieve(keys)).status == "processed"


async def test_files_given_at_the_creation_are_indexed(it: Searches) -> None:
    file_id = await it.file(KEYS)
    made = await it.sdk.vector_stores.create(file_ids=[file_id])
    assert (await it.indexed(made.id, file_id)).status == "completed"


async def test_a_long_file_is_cut_into_chunks_that_overlap(it: Searches) -> None:
    text = " ".join(f"Room {number} holds the box {number}." for number in range(400))
    strategy: Any = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 40}}
    store_id, _ = await it.store_of(text, chunking_strategy=strategy)
    found = (
        await it.sdk.vector_stores.search(store_id, query="Which box does room 250 hold?", max_num_results=50)
    ).data
    texts = [one.content[0].text for one in found]
    assert len(texts) == 50
    assert "box 250." in texts[0]
    assert max(map(len, texts)) < 400


FILTERS: list[tuple[Any, set[int]]] = [
    ({"type": "eq", "key": "year", "value": 2024}, {0}),
    ({"type": "ne", "key": "year", "value": 2024}, {1, 2}),
    ({"type": "gte", "key": "year", "value": 2025}, {1}),
    ({"type": "in", "key": "kind", "value": ["a", "b"]}, {0, 1}),
    ({"type": "eq", "key": "open", "value": True}, {0}),
    ({"type": "or", "filters": [{"type": "eq", "key": "kind", "value": kind} for kind in ("b", "c")]}, {1, 2}),
    (
        {
            "type": "and",
            "filters": [{"type": "eq", "key": "kind", "value": "a"}, {"type": "gt", "key": "year", "value": 2024}],
        },
        set[int](),
    ),
]


async def test_a_search_is_limited_to_files_with_the_attributes(it: Searches) -> None:
    store_id, files = (await it.sdk.vector_stores.create(name="n")).id, [await it.file(f"{KEYS} {n}") for n in range(3)]
    each: list[Any] = [{"year": 2024, "kind": "a", "open": True}, {"year": 2025, "kind": "b"}, {"kind": "c"}]
    for file_id, attributes in zip(files, each, strict=True):
        await it.attached(store_id, file_id, attributes=attributes)
    for filters, shown in FILTERS:
        page = await it.sdk.vector_stores.search(store_id, query="key", filters=filters)
        assert {files.index(one.file_id) for one in page.data} == shown, filters


async def test_results_below_the_threshold_and_beyond_the_number_are_left_out(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS, TEA)
    search = it.sdk.vector_stores.search
    assert len((await search(store_id, query="tea at five", max_num_results=1)).data) == 1
    assert (await search(store_id, query="tea", ranking_options={"score_threshold": 1.0})).data == []


async def test_new_attributes_replace_the_old(it: Searches) -> None:
    store_id, [file_id] = await it.store_of(KEYS, attributes={"a": "old"})
    changed = await it.sdk.vector_stores.files.update(file_id, vector_store_id=store_id, attributes={"b": 1})
    assert changed.attributes == {"b": 1}
    found = await it.sdk.vector_stores.search(store_id, query="key", filters={"type": "eq", "key": "b", "value": 1})
    assert [one.attributes for one in found.data] == [{"b": 1}]


async def test_a_file_without_text_fails(it: Searches) -> None:
    store_id, file_id = (await it.sdk.vector_stores.create(name="n")).id, await it.file("a\0b", "a.bin")
    failed = await it.attached(store_id, file_id)
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert failed.last_error.code == "unsupported_file"
    assert (await it.sdk.vector_stores.retrieve(store_id)).file_counts.failed == 1


async def test_a_wrong_search_is_refused(it: Searches) -> None:
    store_id = (await it.sdk.vector_stores.create(name="n")).id
    wrong: list[Any] = [
        {"query": ""},
        {"query": "a", "max_num_results": 51},
        {"query": "a", "filters": {"type": "like", "key": "a", "value": "b"}},
        {"query": "a", "filters": {"type": "eq", "key": "a", "value": "0" * 513}},
        {"query": "a", "rewrite_query": True},
        {"query": "a", "rewrite_query": 0},
    ]
    for fields in wrong:
        with pytest.raises(UnprocessableEntityError):
            await it.sdk.vector_stores.search(store_id, **fields)


async def test_a_filter_of_too_many_levels_is_refused_with_a_code(it: Searches) -> None:
    store_id = (await it.sdk.vector_stores.create(name="n")).id
    filters: Any = {"type": "eq", "key": "a", "value": "b"}
    for _ in range(8):
        filters = {"type": "and", "filters": [filters]}
    with pytest.raises(UnprocessableEntityError) as refused:
        await it.sdk.vector_stores.search(store_id, query="a", filters=filters)
    assert (refused.value.code, refused.value.param) == ("filter_too_large", "filters")


async def test_an_overlap_over_half_of_a_chunk_is_refused(it: Searches) -> None:
    strategy: Any = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 51}}
    with pytest.raises((BadRequestError, UnprocessableEntityError)):
        await it.sdk.vector_stores.create(file_ids=[await it.file(KEYS)], chunking_strategy=strategy)


async def test_a_deleted_file_leaves_its_vector_stores(it: Searches) -> None:
    store_id, [file_id] = await it.store_of(KEYS)
    await it.sdk.files.delete(file_id)
    assert (await it.sdk.vector_stores.search(store_id, query="key")).data == []
    assert [one.id async for one in it.sdk.vector_stores.files.list(store_id)] == []
    assert await it.chunks() == 0


async def test_a_deleted_vector_store_leaves_no_chunks(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    assert (await it.chunks() > 0, await it.chunks("a")) == (True, 0)  # they are none of the tenant's memories
    await it.sdk.vector_stores.delete(store_id)
    assert await it.chunks() == 0


async def test_an_erased_user_loses_the_vector_stores_that_name_them(it: Searches) -> None:
    mine = await it.sdk.vector_stores.create(metadata={"user_id": "alice"})
    await it.attached(mine.id, await it.file(KEYS))
    theirs = await it.sdk.vector_stores.create(metadata={"user_id": "bob"})
    await erase(Namespace(tenant="a", user_id="alice"), it.gateway.memory)
    assert [one.id async for one in it.sdk.vector_stores.list()] == [theirs.id]
    assert await it.chunks() == 0


async def test_limits_hold(redis_url: str, tmp_path: Path) -> None:
    few = {"tenant_vector_stores": 1, "vector_store_files": 1, "vector_store_bytes": 20}
    async with searches(redis_url, tmp_path, script("Hello."), **few) as it, it.working():
        store_id = (await it.sdk.vector_stores.create(name="n")).id
        with pytest.raises(APIStatusError) as many:
            await it.sdk.vector_stores.create(name="m")
        assert (many.value.status_code, many.value.code) == (413, "vector_store_quota_exceeded")
        failed = await it.attached(store_id, await it.file(KEYS))
        assert failed.last_error is not None
        assert (failed.status, failed.last_error.code) == ("failed", "invalid_file")
        with pytest.raises(APIStatusError) as full:
            await it.sdk.vector_stores.files.create(store_id, file_id=await it.file(TEA))
        assert (full.value.status_code, full.value.code) == (413, "vector_store_full")


async def test_a_vector_store_that_cannot_have_its_files_is_not_made(redis_url: str, tmp_path: Path) -> None:
    async with searches(redis_url, tmp_path, script("Hello."), vector_store_files=1) as it, it.working():
        files = [await it.file(KEYS), await it.file(TEA)]
        for _ in range(3):  # as a client's retries
            with pytest.raises(APIStatusError) as full:
                await it.sdk.vector_stores.create(
                    name="kb", file_ids=files, expires_after={"anchor": "last_active_at", "days": 1}
                )
            assert (full.value.status_code, full.value.code) == (413, "vector_store_full")
        assert [one.id async for one in it.sdk.vector_stores.list()] == []
        assert await keys(it.gateway.redis, "*:vector-store*:*vs_*") == []


@pytest.mark.parametrize("error", [RateLimited("full"), Unavailable("nearly full")], ids=["429", "503"])
async def test_a_vector_store_whose_files_cannot_be_queued_is_not_made(it: Searches, error: MemloopError) -> None:
    queue, files = FullQueue(it.gateway.app.state.vector_stores.queue, error), [await it.file(KEYS)]
    it.gateway.app.state.vector_stores = replace(it.gateway.app.state.vector_stores, queue=cast(LaneQueue, queue))
    with pytest.raises(APIStatusError) as refused:
        await it.sdk.vector_stores.create(name="kb", file_ids=files, metadata={"user_id": "alice"})
    assert refused.value.status_code == error.http_status
    assert [one.id async for one in it.sdk.vector_stores.list()] == []


class FullQueue:
    """A queue that takes no job."""

    def __init__(self, queue: LaneQueue, error: MemloopError) -> None:
        self.keys, self.indexes, self.newest_token = queue.keys, queue.indexes, queue.newest_token
        self._error = error

    async def admit(self, job: object) -> None:
        raise self._error


async def test_an_expired_vector_store_is_emptied_and_cannot_be_searched(it: Searches) -> None:
    store_id, _ = await it.store_of(KEYS)
    await it.sdk.vector_stores.update(store_id, expires_after={"anchor": "last_active_at", "days": 1})
    redis = it.gateway.redis
    [record], [ending] = [await keys(redis, pattern) for pattern in (f"*:vector-store:*{store_id}", "*stores-ending")]
    await redis.hset(record, "active", "1000")  # pyright: ignore
    await redis.zadd(ending, {f"a {store_id}": 1000})

    async def empty() -> bool:
        return await it.chunks() == 0

    await eventually(empty)
    assert (await it.sdk.vector_stores.retrieve(store_id)).status == "expired"
    with pytest.raises(ConflictError):
        await it.sdk.vector_stores.search(store_id, query="key")
