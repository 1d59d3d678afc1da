"""OpenAI's own client against ``/v1/vector_stores/{id}/file_batches``, on the real memory store."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, NotFoundError, RateLimitError, UnprocessableEntityError
from openai.types.vector_stores import VectorStoreFileBatch

from gateway.queue import LaneQueue, Submission
from gateway.vector_stores.schemas import FileAttach
from memloop_state.steps import Guard
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.file_searches import KEYS, TEA, Searches, searches
from tests.gateway.file_uploads import processed
from tests.gateway.redis_view import keys
from tests.gateway.rig import eventually, script

SHORT: Any = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
LONG = " ".join(f"Room {number} holds the box {number}." for number in range(60_000))


@pytest.fixture
async def idle(redis_url: str, tmp_path: Path) -> AsyncGenerator[Searches]:
    """A gateway without a worker."""
    async with searches(redis_url, tmp_path, script("Hello.")) as found:
        yield found


@pytest.fixture
async def it(idle: Searches) -> AsyncGenerator[Searches]:
    """A gateway with a worker."""
    async with idle.working():
        yield idle


async def _store(it: Searches) -> str:
    return (await it.sdk.vector_stores.create(name="notes")).id


def _counts(batch: VectorStoreFileBatch) -> dict[str, int]:
    return {status: count for status, count in batch.file_counts.model_dump().items() if count}


async def test_files_are_uploaded_and_indexed_as_the_quickstart_does(it: Searches) -> None:
    store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
    batch = await batches.upload_and_poll(
        store_id, files=[("keys.txt", KEYS.encode()), ("tea.txt", TEA.encode())], poll_interval_ms=50
    )
    assert (batch.object, batch.status, batch.vector_store_id) == ("vector_store.files_batch", "completed", store_id)
    assert _counts(batch) == {"completed": 2, "total": 2}
    assert await batches.retrieve(batch.id, vector_store_id=store_id) == batch
    found = await it.sdk.vector_stores.search(store_id, query="Where is the spare key of the boat house?")
    assert (found.data[0].filename, found.data[0].content[0].text) == ("keys.txt", KEYS)
    assert (await it.sdk.vector_stores.retrieve(store_id)).file_counts.completed == 2


async def test_attributes_and_chunks_of_a_batch_are_those_of_its_file_ids(it: Searches) -> None:
    store_id, files = await _store(it), [await it.file(KEYS), await it.file(TEA)]
    await it.sdk.vector_stores.file_batches.create_and_poll(
        store_id, file_ids=files, attributes={"kind": "house"}, chunking_strategy=SHORT, poll_interval_ms=50
    )
    for file in [await it.indexed(store_id, file_id) for file_id in files]:
        assert (file.status, file.attributes) == ("completed", {"kind": "house"})
        assert file.to_dict()["chunking_strategy"] == SHORT


async def test_each_of_files_brings_its_own_attributes_and_chunks(it: Searches) -> None:
    store_id, [keys, tea] = await _store(it), [await it.file(KEYS), await it.file(TEA)]
    each: list[Any] = [{"file_id": keys, "attributes": {"year": 1}, "chunking_strategy": SHORT}, {"file_id": tea}]
    batch = await it.sdk.vector_stores.file_batches.create_and_poll(
        store_id, files=each, attributes={"ignored": True}, poll_interval_ms=50
    )
    assert _counts(batch) == {"completed": 2, "total": 2}
    one, two = [await it.indexed(store_id, file_id) for file_id in (keys, tea)]
    assert (one.attributes, two.attributes) == ({"year": 1}, {})
    assert one.to_dict()["chunking_strategy"] == SHORT != two.to_dict()["chunking_strategy"]


async def test_the_files_of_a_batch_are_listed_by_status_and_in_pages(it: Searches) -> None:
    store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
    await it.attached(store_id, await it.file("Of no batch."))
    files = [await it.file(KEYS), await it.file("a\0b", "a.bin"), await it.file(TEA)]
    batch = await batches.create_and_poll(store_id, file_ids=files, poll_interval_ms=50)
    assert (batch.status, _counts(batch)) == ("completed", {"completed": 2, "failed": 1, "total": 3})

    async def listed(**how: Any) -> list[str]:
        return [one.id async for one in batches.list_files(batch.id, vector_store_id=store_id, **how)]

    assert await listed() == files[::-1]
    assert await listed(order="asc", limit=1) == files
    assert await listed(order="asc", after=files[0]) == files[1:]
    assert (await listed(filter="failed"), await listed(filter="cancelled")) == (files[1:2], [])
    with pytest.raises(NotFoundError):
        await listed(after="file-none")


async def test_a_batch_of_nothing_but_unreadable_files_fails(it: Searches) -> None:
    batch = await it.sdk.vector_stores.file_batches.upload_and_poll(
        await _store(it), files=[("a.bin", b"a\0b")], poll_interval_ms=50
    )
    assert (batch.status, _counts(batch)) == ("failed", {"failed": 1, "total": 1})


async def test_nothing_is_added_when_one_file_is_unknown(idle: Searches) -> None:
    store_id, file_id = await _store(idle), await idle.file(KEYS)
    for other in ("file-none", "vs_1", file_id[:-1]):
        with pytest.raises(NotFoundError) as refused:
            await idle.sdk.vector_stores.file_batches.create(store_id, file_ids=[file_id, other])
        assert "File 2 of 2 not found." in refused.value.message
    assert (await idle.sdk.vector_stores.retrieve(store_id)).file_counts.total == 0


async def test_a_wrong_batch_is_refused(idle: Searches) -> None:
    store_id = await _store(idle)
    wrong: list[Any] = [
        {},
        {"file_ids": []},
        {"files": []},
        {"file_ids": ["file-1"], "files": [{"file_id": "file-1"}]},
        {"file_ids": ["file-1"] * 2001},
        {"files": [{"file_id": "file-1"}] * 2001},
        {"file_ids": ["file-1"], "attributes": {f"{number}": 1 for number in range(17)}},
    ]
    for fields in wrong:
        with pytest.raises(UnprocessableEntityError):
            await idle.sdk.vector_stores.file_batches.create(store_id, **fields)


async def test_a_file_named_twice_is_one_file(it: Searches) -> None:
    file_id = await it.file(KEYS)
    batch = await it.sdk.vector_stores.file_batches.create_and_poll(
        await _store(it), file_ids=[file_id, file_id], poll_interval_ms=50
    )
    assert _counts(batch) == {"completed": 1, "total": 1}


async def test_a_cancelled_batch_is_not_indexed(idle: Searches) -> None:
    store_id, batches = await _store(idle), idle.sdk.vector_stores.file_batches
    batch = await batches.create(store_id, file_ids=[await idle.file(KEYS), await idle.file(TEA)])
    assert (batch.status, _counts(batch)) == ("in_progress", {"in_progress": 2, "total": 2})
    cancelled = await batches.cancel(batch.id, vector_store_id=store_id)
    assert (cancelled.status, _counts(cancelled)) == ("cancelled", {"cancelled": 2, "total": 2})
    async with idle.working():
        later = await idle.attached(store_id, await idle.file("Later."))
    assert later.status == "completed"
    assert await batches.retrieve(batch.id, vector_store_id=store_id) == cancelled
    assert {one.file_id for one in (await idle.sdk.vector_stores.search(store_id, query="key")).data} == {later.id}


async def test_a_batch_that_is_being_indexed_stops(it: Searches) -> None:
    store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
    files = [await it.file(KEYS), await it.file(LONG)]
    before = await it.chunks()
    batch = await batches.create(store_id, file_ids=files, chunking_strategy=SHORT)
    assert (await it.indexed(store_id, files[0])).status == "completed"

    async def begun() -> bool:
        return await it.chunks() > before + 2  # the vector store and its first file

    await eventually(begun)
    await batches.cancel(batch.id, vector_store_id=store_id)
    assert (await it.indexed(store_id, files[1])).status == "cancelled"
    stopped = await batches.retrieve(batch.id, vector_store_id=store_id)
    assert (stopped.status, _counts(stopped)) == ("cancelled", {"completed": 1, "cancelled": 1, "total": 2})
    assert (await it.sdk.vector_stores.retrieve(store_id)).usage_bytes == len(KEYS)
    found = await it.sdk.vector_stores.search(store_id, query="Which box does room 7 hold?", max_num_results=50)
    assert [one.file_id for one in found.data] == [files[0]]

    async def erased() -> bool:
        return await it.chunks() == before + 2

    await eventually(erased)


async def test_a_finished_batch_cannot_be_cancelled_any_more(it: Searches) -> None:
    store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
    batch = await batches.create_and_poll(store_id, file_ids=[await it.file(KEYS)], poll_interval_ms=50)
    assert await batches.cancel(batch.id, vector_store_id=store_id) == batch


async def test_a_file_that_is_attached_again_or_taken_out_leaves_its_batch(it: Searches) -> None:
    store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
    files = [await it.file(KEYS), await it.file(TEA), await it.file("Left.")]
    batch = await batches.create_and_poll(store_id, file_ids=files, poll_interval_ms=50)
    again = await batches.create_and_poll(store_id, file_ids=files[:1], poll_interval_ms=50)
    await it.sdk.vector_stores.files.delete(files[1], vector_store_id=store_id)
    assert _counts(await batches.retrieve(batch.id, vector_store_id=store_id)) == {"completed": 1, "total": 1}
    assert _counts(again) == {"completed": 1, "total": 1}
    found = await it.sdk.vector_stores.search(store_id, query="Where is the spare key?")
    assert sorted(one.content[0].text for one in found.data) == ["Left.", KEYS]
    await it.sdk.files.delete(files[2])
    with pytest.raises(NotFoundError):
        await batches.retrieve(batch.id, vector_store_id=store_id)


async def test_another_vector_store_has_no_such_batch(idle: Searches) -> None:
    store_id, elsewhere, batches = await _store(idle), await _store(idle), idle.sdk.vector_stores.file_batches
    batch = await batches.create(store_id, file_ids=[await idle.file(KEYS)])
    with pytest.raises(NotFoundError):
        await batches.retrieve(batch.id, vector_store_id=elsewhere)


async def test_a_batch_beyond_the_limits_adds_nothing(redis_url: str, tmp_path: Path) -> None:
    async with searches(redis_url, tmp_path, script("Hello."), vector_store_files=2) as it:
        store_id, batches = await _store(it), it.sdk.vector_stores.file_batches
        files = [await it.file(f"File {number}.") for number in range(3)]
        with pytest.raises(APIStatusError) as full:
            await batches.create(store_id, file_ids=files)
        assert (full.value.status_code, full.value.code) == (413, "vector_store_full")
        assert (await it.sdk.vector_stores.retrieve(store_id)).file_counts.total == 0
        assert _counts(await batches.create(store_id, file_ids=files[:2])) == {"in_progress": 2, "total": 2}


async def test_a_batch_beyond_the_queue_changes_nothing(redis_url: str, tmp_path: Path) -> None:
    one_job = {"tenant_queue_share": 1e-12}
    async with searches(redis_url, tmp_path, script("Hello."), **one_job) as it:
        async with it.working():
            store_id, files = await _store(it), list[str]()
            for text in (TEA, KEYS):
                files.append(await it.file(text))
                await processed(it.gateway, files[-1], key=ALICE_KEY)
            new, there = files
            await it.attached(store_id, there)
        before = await it.sdk.vector_stores.files.retrieve(there, vector_store_id=store_id)
        with pytest.raises(RateLimitError) as full:
            await it.sdk.vector_stores.file_batches.create(store_id, file_ids=[new, there])
        assert full.value.code == "queue_quota_exceeded"
        assert [one async for one in it.sdk.vector_stores.files.list(store_id)] == [before]
        async with it.working():
            found = await it.sdk.vector_stores.search(store_id, query="Where is the spare key?")
        assert [one.content[0].text for one in found.data] == [KEYS]


class Dying(LaneQueue):
    """A queue in whose process everything ends once ``lives`` jobs are admitted."""

    lives = 1

    async def admit(self, job: Submission, *, guard: Guard | None = None) -> bool:
        """Admit the job, or end."""
        if not self.lives:
            raise asyncio.CancelledError
        self.lives -= 1
        return await super().admit(job, guard=guard)


async def test_files_are_indexed_whose_gateway_died_before_their_jobs_were_queued(idle: Searches) -> None:
    store_id, files = await _store(idle), [await idle.file(text) for text in (TEA, KEYS, "Left.")]
    vector_stores, redis = idle.gateway.app.state.vector_stores, idle.gateway.redis
    dying = replace(vector_stores, queue=Dying(redis, vector_stores.queue.name))
    with pytest.raises(asyncio.CancelledError):
        await dying.attach("a", store_id, [FileAttach(file_id=one) for one in files])
    assert (await idle.sdk.vector_stores.retrieve(store_id)).file_counts.in_progress == 3
    async with idle.working():
        assert (await idle.indexed(store_id, files[0])).status == "completed"
        assert (await idle.sdk.vector_stores.retrieve(store_id)).file_counts.in_progress == 2
        [attaching] = await keys(redis, "*attaching")
        [line] = await vector_stores.queue.indexes.ids(attaching)
        await vector_stores.queue.indexes.add(attaching, {line: 1})
        for one in files[1:]:
            assert (await idle.indexed(store_id, one)).status == "completed"
    assert await keys(redis, "*attaching") == []
    found = await idle.sdk.vector_stores.search(store_id, query="Where is the spare key?")
    assert sorted(one.content[0].text for one in found.data) == ["Left.", TEA, KEYS]


async def test_a_tenant_with_blanks_in_its_name_stops_no_sweep(idle: Searches) -> None:
    vector_stores, redis = idle.gateway.app.state.vector_stores, idle.gateway.redis
    await vector_stores.queue.indexes.add("memloop:vector-stores:attaching", {"Acme and Sons vs_1 job": 1})
    await vector_stores.sweep()
    assert await keys(redis, "*attaching") == []


async def test_attributes_and_status_that_change_at_once_both_stay(idle: Searches) -> None:
    store_id, file_id = await _store(idle), await idle.file(KEYS)
    vector_stores = idle.gateway.app.state.vector_stores
    records = vector_stores.records
    for number in range(30):
        await idle.sdk.vector_stores.files.create(store_id, file_id=file_id)
        known = await records.file("a", store_id, file_id)
        await asyncio.gather(
            records.change("a", known, status="completed"),
            *(vector_stores.update_file("a", store_id, file_id, {f"n{one}": float(number)}) for one in range(3)),
        )
        now = (await records.file("a", store_id, file_id)).file
        assert (now.status, *now.attributes.values()) == ("completed", float(number))
        assert await records.change("a", known, status="cancelled") == "gone"


async def test_attributes_that_change_while_a_file_is_indexed_stay(it: Searches) -> None:
    store_id, file_id = await _store(it), await it.file(LONG[:60_000])  # three writes of 64 chunks
    await it.sdk.vector_stores.files.create(store_id, file_id=file_id, chunking_strategy=SHORT)

    async def begun() -> bool:
        return await it.chunks() > 0

    await eventually(begun)
    changed = await it.sdk.vector_stores.files.update(file_id, vector_store_id=store_id, attributes={"late": True})
    assert changed.status == "in_progress"
    assert (await it.indexed(store_id, file_id)).attributes == {"late": True}
