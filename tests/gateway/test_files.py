"""``/v1/files`` through the API and its worker: uploads, texts, quotas, deletion, reading a file."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from gateway.files.extraction import ExtractionLimits, ExtractionRules
from gateway.files.files import FileHandler
from gateway.files.records import FILES_EXPIRING
from gateway.queue import Hold
from memloop.wire.errors import TooLarge
from memloop_state.queue.jobs import Worker
from memloop_state.steps import Partition, Partitions
from tests.gateway.api_rig import Api, api, events_of
from tests.gateway.file_uploads import FILES, objects, processed, sent, stored, upload
from tests.gateway.long_reads import DOCUMENT, PATH, asked, ended, reader
from tests.gateway.rig import eventually


def with_storage(folder: Path, **changes: Any) -> dict[str, Any]:
    return {"storage_url": folder.as_uri(), "sweep_every_s": 0.05, **changes}


async def test_the_openai_sdk_uploads_lists_fetches_and_deletes(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        async with AsyncOpenAI(base_url=it.gateway.url + "/v1", api_key="unused", max_retries=0) as sdk:
            expiry: Any = {"anchor": "created_at", "seconds": 3600}
            made = await sdk.files.create(file=("tea.md", b"# Tea\nat five"), purpose="user_data", expires_after=expiry)
            done = await sdk.files.wait_for_processing(made.id, poll_interval=0.05)
            assert (done.status, done.bytes, done.filename, done.purpose) == ("processed", 13, "tea.md", "user_data")
            assert done.expires_at == done.created_at + 3600
            assert [file.id async for file in await sdk.files.list()] == [made.id]
            assert (await sdk.files.content(made.id)).content == b"# Tea\nat five"
            assert (await sdk.files.delete(made.id)).deleted
            assert [file.id async for file in await sdk.files.list()] == []
        await eventually(lambda: stored(tmp_path) == [])


async def test_files_of_either_purpose_are_taken_and_listed_by_it(redis_url: str, tmp_path: Path) -> None:
    async with (
        api(redis_url, reader, **with_storage(tmp_path)) as it,
        AsyncOpenAI(base_url=it.gateway.url + "/v1", api_key="unused", max_retries=0) as sdk,
    ):
        made = [
            await sdk.files.create(file=(f"{number}.txt", b"tea"), purpose=purpose)
            for number, purpose in enumerate(("assistants", "user_data", "user_data", "assistants"))
        ]
        listed = [file async for file in await sdk.files.list(purpose="assistants", order="asc", limit=1)]
        assert [file.id for file in listed] == [made[0].id, made[3].id]
        assert {file.purpose for file in listed} == {"assistants"}
        assert [file async for file in await sdk.files.list(purpose="batch")] == []


async def test_a_file_is_read_in_the_foreground_and_in_the_background_as_its_text_would_be(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        file = await upload(it.gateway, DOCUMENT.encode())
        by_text = (await it.post(PATH, asked())).json
        calls = list(it.rig.engine.calls)
        it.rig.engine.calls.clear()
        by_file = (await it.post(PATH, asked(document={"file_id": file["id"]}))).json  # waits for the extraction
        assert it.rig.engine.calls == calls
        queued = (await it.post(PATH, asked(document={"file_id": file["id"]}, background=True))).json
        in_background = await ended(it, queued["id"])
        estimates = [
            (await it.post(f"{PATH}/estimate", asked(document=document))).json
            for document in ({"text": DOCUMENT}, {"file_id": file["id"]})
        ]
    same = ("status", "output_text", "memory", "usage", "progress")
    assert [by_file[name] for name in same] == [by_text[name] for name in same]
    assert [in_background[name] for name in same] == [by_text[name] for name in same]
    assert estimates[0] == estimates[1]


async def test_a_long_document_of_a_background_read_waits_in_the_storage_and_not_in_redis(
    redis_url: str, tmp_path: Path
) -> None:
    document = "one two three four. " * 30_000
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        body = asked(document={"text": document}, chunk_tokens=None, background=True)
        read = (await it.post(PATH, body)).json
        size = await it.rig.work.state.memory_usage(Partitions(it.rig.work.state).job(read["id"]))  # pyright: ignore[reportUnknownMemberType]
        assert size is not None
        assert size < 10_000
        assert stored(tmp_path) == ["data"]
        async with it.rig.working():
            done = await ended(it, read["id"])
        assert (await it.call("DELETE", f"{PATH}/{read['id']}")).status == 200
    assert (done["status"], done["output_text"]) == ("completed", "In Rome.")
    said = "".join(call["messages"][-1]["content"] for call in it.rig.engine.calls)
    assert said.count("one two three four.") > 29_000


async def test_a_deleted_read_lets_its_document_go_and_a_deleted_file_is_still_read_to_its_end(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, hang_at=1, **with_storage(tmp_path)) as it, it.rig.working():
        file = await upload(it.gateway, DOCUMENT.encode())
        await processed(it.gateway, file["id"])
        read = (await it.post(PATH, asked(document={"file_id": file["id"]}, background=True))).json
        await it.rig.engine.hanging.wait()
        await it.call("DELETE", f"{FILES}/{file['id']}")
        assert (await it.get(f"{FILES}/{file['id']}")).status == 404
        it.rig.engine.let_go.set()
        assert (await ended(it, read["id"]))["status"] == "completed"
        assert stored(tmp_path) == ["chunks-estimate-80", "data"]
        holders = _at(it).key("blobs", "holders")
        await it.rig.work.state.zadd(holders, dict.fromkeys(await _members(it, holders), 0.0))
        await eventually(lambda: stored(tmp_path) == [])
        assert await it.rig.work.state.get(_at(it).key("blob-bytes", "local")) == "0"


def _at(it: Api) -> Partition:
    """Where what the tenant stores is counted."""
    return Partitions(it.rig.work.state).of_name("local")


async def _members(it: Api, key: str) -> list[bytes]:
    return await it.rig.work.state.zrange(key, 0, -1)  # pyright: ignore


async def test_the_same_content_is_stored_once_and_stays_until_its_last_file_goes(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        files = [await upload(it.gateway, b"the same", name=name) for name in ("a.txt", "b.txt")]
        for file in files:
            assert (await processed(it.gateway, file["id"]))["status"] == "processed"
        await eventually(lambda: stored(tmp_path) == ["data"])  # the text is the same content too
        await it.call("DELETE", f"{FILES}/{files[0]['id']}")
        assert (await it.get(f"{FILES}/{files[1]['id']}/content")).raw == b"the same"
        await it.call("DELETE", f"{FILES}/{files[1]['id']}")
        await eventually(lambda: stored(tmp_path) == [])


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"tenant_files": 1}, "file_quota_exceeded"), ({"tenant_storage_bytes": 30}, "storage_quota_exceeded")],
)
async def test_a_tenant_over_its_quota_is_refused_and_nothing_more_is_stored(
    redis_url: str, tmp_path: Path, changes: dict[str, int], code: str
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path, **changes)) as it:
        await upload(it.gateway, b"x" * 20)
        answer = await sent(it.gateway, b"y" * 20)
        assert (answer.status, answer.error["code"]) == (413, code)
        assert len((await it.get(FILES)).json["data"]) == 1
        assert stored(tmp_path) == ["data"]


async def test_a_file_over_the_limit_is_refused_and_nothing_of_it_stays(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path, max_file_bytes=10_000)) as it:
        answers = [await sent(it.gateway, b"x" * size) for size in (10_001, 10_000_000)]
        assert (await sent(it.gateway, b"x" * 10_000)).status == 200
    assert [(answer.status, answer.error["type"]) for answer in answers] == [(413, "invalid_request_error")] * 2
    assert stored(tmp_path) == ["data"]


async def test_what_is_no_right_form_is_refused_and_nothing_of_it_stays(redis_url: str, tmp_path: Path) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        statuses = [
            (await sent(it.gateway, b"x", purpose="batch")).status,
            (await sent(it.gateway, b"")).status,
            (await sent(it.gateway, b"x", **{"expires_after[seconds]": "1"})).status,
            (await it.post(FILES, {"purpose": "user_data"})).status,
            (await it.call("POST", FILES, b"--b--\r\n", headers=form)).status,
            (await it.call("POST", FILES, part, headers=form)).status,
            (await it.call("POST", FILES, part * 2 + b"--b--\r\n", headers=form)).status,
            (await it.call("POST", FILES, b"nonsense", headers=form)).status,
        ]
        loose = await _members(it, _at(it).key("blobs", "loose"))
    assert statuses == [422, 422, 422, 400, 422, 400, 422, 400]
    assert stored(tmp_path) == []
    assert loose != []  # swept later, in case that a process dies before it cleans up


async def test_an_upload_of_no_stated_size_stops_where_the_quota_ends(redis_url: str, tmp_path: Path) -> None:
    written: list[int] = []

    async def blocks() -> AsyncGenerator[bytes]:
        for _ in range(20):
            written.append(1 << 20)
            yield bytes(1 << 20)

    async with api(redis_url, reader, **with_storage(tmp_path, tenant_storage_bytes=3 << 20)) as it:
        records = it.rig.work.reading.files.records
        assert records is not None
        with pytest.raises(TooLarge) as refused:
            await records.blobs.written("local", blocks())
    assert refused.value.code == "storage_quota_exceeded"
    assert sum(written) == 4 << 20
    assert stored(tmp_path) == []


async def test_a_file_without_text_shows_the_reason_and_cannot_be_read(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it, it.rig.working():
        file = await upload(it.gateway, b"%PDF-1.7 nonsense", name="a.pdf", media_type="application/pdf")
        failed = await processed(it.gateway, file["id"])
        assert (failed["status"], failed["status_details"]) == ("error", "the file is damaged (PDF)")
        answer = await it.post(PATH, asked(document={"file_id": file["id"]}))
        assert (answer.status, answer.error["code"]) == (422, "file_unreadable")
        assert (await it.get(f"{FILES}/{file['id']}/content")).raw == b"%PDF-1.7 nonsense"


async def test_a_read_of_a_file_without_its_text_yet_gets_retry_after(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path, file_wait_s=0.05)) as it:
        file = await upload(it.gateway, b"text")
        answer = await it.post(PATH, asked(document={"file_id": file["id"]}))
    assert (answer.status, answer.error["code"]) == (409, "file_not_ready")
    assert float(answer.headers["Retry-After"]) > 0


async def test_an_expired_file_is_deleted(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        file = await upload(
            it.gateway, b"x", **{"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
        )
        await it.rig.work.state.zadd(FILES_EXPIRING, dict.fromkeys(await _members(it, FILES_EXPIRING), 0.0))
        async with it.rig.working():
            await eventually(lambda: stored(tmp_path) == [])
        assert (await it.get(f"{FILES}/{file['id']}")).status == 404


async def test_a_file_whose_text_comes_while_it_is_deleted_leaves_nothing(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        file = await upload(it.gateway, b"some text")
        records = it.rig.work.reading.files.records
        assert records is not None

        async def extract(tenant: str, file_id: str) -> None:
            async with it.rig.working():
                assert (await processed(it.gateway, file_id))["status"] == "processed"

        records.before_deletion(extract)
        await records.delete("local", file["id"])
        assert await it.rig.work.state.get(_at(it).key("blob-bytes", "local")) == "0"
        assert stored(tmp_path) == []


async def test_a_file_that_is_deleted_before_its_text_is_recorded_leaves_nothing(
    redis_url: str, tmp_path: Path
) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        file = await upload(it.gateway, b"some text")
        records = it.rig.work.reading.files.records
        assert records is not None
        limits = ExtractionLimits(memory_bytes=1 << 30, cpu_s=30, wall_s=30, text_bytes=1 << 20)
        handler = FileHandler(records, ExtractionRules(limits, base_cpu_s=30, cpu_s_per_mib=1))
        worker, part = Worker("w", lease_ms=60_000, idle_ms=60_000), records.queue.keys.of_id(file["id"])
        lease = await records.queue.take(worker, partition=part)
        assert lease is not None
        done = await handler.run(lease, Hold(records.queue, lease))
        await records.delete("local", file["id"])
        assert done.if_lost is not None
        await done.if_lost()
        assert stored(tmp_path) == []


async def test_without_a_storage_files_are_not_served_and_reads_go_on(redis_url: str) -> None:
    async with api(redis_url, reader) as it, it.rig.working():
        assert (await sent(it.gateway, b"x")).status == 501
        assert (await it.get(FILES)).status == 501
        long = asked(document={"text": "one two three four. " * 20_000}, chunk_tokens=None, background=True)
        assert (await ended(it, (await it.post(PATH, long)).json["id"]))["status"] == "completed"


async def test_pages_of_files_follow_one_another_in_both_orders(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        ids: list[str] = []
        for number in range(3):
            ids.append((await upload(it.gateway, f"file {number}".encode()))["id"])
            await asyncio.sleep(0.002)
        newest = (await it.get(f"{FILES}?limit=2")).json
        rest = (await it.get(f"{FILES}?limit=2&after={newest['last_id']}")).json
        oldest = (await it.get(f"{FILES}?order=asc")).json
    assert [file["id"] for page in (newest, rest) for file in page["data"]] == ids[::-1]
    assert (newest["has_more"], rest["has_more"]) == (True, False)
    assert [file["id"] for file in oldest["data"]] == ids


async def test_a_read_whose_document_is_gone_fails_with_that_reason(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, reader, **with_storage(tmp_path)) as it:
        long = asked(document={"text": "one two three four. " * 20_000}, chunk_tokens=None, background=True)
        read_id = (await it.post(PATH, long)).json["id"]
        for path in objects(tmp_path):
            path.unlink()
        async with it.rig.working():
            read = await ended(it, read_id)
            events = events_of(await it.get(f"{PATH}/{read_id}?stream=true"))
    assert (read["status"], read["error"]["code"]) == ("failed", "document_gone")
    assert events[-1][0] == "long_read.failed"
