"""The documents of reads in the storage: nothing stays of one that is deleted, erased, refused or estimated."""

from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from memloop_state.steps import Partitions
from tests.gateway.api_rig import Api, api
from tests.gateway.file_uploads import FILES, objects, processed, stored, upload
from tests.gateway.long_reads import DOCUMENT, PATH, asked, ended, reader
from tests.gateway.rig import eventually
from tests.gateway.test_files import with_storage

LONG = "one two three four. " * 15_000
"""300 kB: in the background it waits in the storage."""


def long_read(**fields: Any) -> dict[str, Any]:
    return asked(document={"text": LONG}, chunk_tokens=None, background=True, **fields)


async def uploaded_by(it: Api, user_id: str, raw: bytes) -> str:
    """The id of a file that belongs to a user."""
    form = aiohttp.FormData()
    form.add_field("purpose", "user_data")
    form.add_field("file", raw, filename="a.txt")
    headers = {"X-Memory-User-Id": user_id}
    async with it.gateway.http.post(it.gateway.url + FILES, data=form, headers=headers) as response:
        file_id: str = orjson.loads(await response.read())["id"]
    assert (await processed(it.gateway, file_id))["status"] == "processed"
    return file_id


async def bytes_held(it: Api) -> int:
    """The bytes that count towards the tenant's quota."""
    redis = it.rig.work.state
    return int(await redis.get(Partitions(redis).of_name("local").key("blob-bytes", "local")) or 0)


async def test_erasing_a_user_deletes_the_text_of_a_file_that_a_finished_read_has_read(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        file_id = await uploaded_by(it, "bob", b"Bob's secret diary.")
        read = (await it.post(PATH, asked(document={"file_id": file_id}, background=True))).json
        assert (await ended(it, read["id"]))["status"] == "completed"
        erased = (await it.call("DELETE", "/v1/memory?user_id=bob")).json
        assert (erased["files"], erased["long_reads"]) == (1, 1)
        assert (stored(tmp_path), await bytes_held(it)) == ([], 0)


async def test_erasing_a_user_deletes_the_document_of_a_finished_read_that_saved_to_the_user(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        read = (await it.post(PATH, long_read(save_to_memory={"user_id": "carl"}))).json
        assert (await ended(it, read["id"]))["status"] == "completed"
        assert (await it.call("DELETE", "/v1/memory?user_id=carl")).json["long_reads"] == 1
        assert (stored(tmp_path), await bytes_held(it)) == ([], 0)


async def test_reads_that_are_deleted_once_they_have_ended_leave_room_for_the_next(
    redis_url: str, tmp_path: Path
) -> None:
    changes = with_storage(tmp_path, tenant_storage_bytes=2 * len(LONG) - 1)
    async with api(redis_url, reader, **changes) as it, it.rig.working():
        for _ in range(3):
            queued = await it.post(PATH, long_read())
            assert queued.status == 202, queued.raw
            assert (await ended(it, queued.json["id"]))["status"] == "completed"
            assert (await it.call("DELETE", f"{PATH}/{queued.json['id']}")).status == 200
            assert stored(tmp_path) == []


async def test_deleting_a_read_that_was_cancelled_before_it_ran_deletes_its_document(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        read = (await it.post(PATH, long_read())).json
        assert (await it.post(f"{PATH}/{read['id']}/cancel", {})).json["status"] == "cancelled"
        assert (await it.call("DELETE", f"{PATH}/{read['id']}")).status == 200
        assert (stored(tmp_path), await bytes_held(it)) == ([], 0)


@pytest.mark.parametrize("background", [False, True])
async def test_a_read_of_several_files_that_is_over_the_quota_holds_none_of_them(
    redis_url: str, tmp_path: Path, background: bool
) -> None:
    small, large = b"one two three four. " * 10, b"five six seven eight. " * 20
    quota = 2 * len(small + large) + len(small) + 100  # both files with their texts, and a read of the small one
    async with api(redis_url, reader, **with_storage(tmp_path, tenant_storage_bytes=quota)) as it, it.rig.working():
        ids = [(await upload(it.gateway, raw))["id"] for raw in (small, large)]
        for file_id in ids:
            await processed(it.gateway, file_id)
        before = await bytes_held(it)
        refused = await it.post(PATH, asked(document={"file_ids": ids}, background=background))
        assert (refused.status, refused.error["code"]) == (413, "storage_quota_exceeded")
        assert await bytes_held(it) == before
        assert (await it.post(PATH, asked(document={"file_id": ids[0]}))).status == 200


@pytest.mark.parametrize("name", ["file_id", "file_ids"])
async def test_an_estimate_stores_nothing(redis_url: str, tmp_path: Path, name: str) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        ids = [(await upload(it.gateway, raw))["id"] for raw in (DOCUMENT.encode(), b"Another. " * 50)]
        for file_id in ids:
            await processed(it.gateway, file_id)
        await eventually(lambda: stored(tmp_path) == ["data", "data"])
        before = objects(tmp_path)
        document = {name: ids if name == "file_ids" else ids[0]}
        estimate = await it.post(f"{PATH}/estimate", asked(document=document))
        assert (estimate.status, estimate.json["chunks"] > 0) == (200, True), estimate.raw
        assert objects(tmp_path) == before
