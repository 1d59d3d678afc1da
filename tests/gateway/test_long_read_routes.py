"""``/v1/long-read`` over HTTP: at once and as a stream; what is refused; whose it is."""

import asyncio
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.fakes.job_engine import Body, Reply, last_text
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import Api, api, events_of
from tests.gateway.long_reads import PATH, asked, queued, reader
from tests.gateway.rig import eventually
from tests.gateway.running import Answer


async def test_a_short_read_is_answered_at_once_and_can_be_asked_for_later(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        answer = await it.post(PATH, asked(metadata={"case": "7"}))
        again = await it.get(f"{PATH}/{answer.json['id']}")
    assert answer.status == 200
    assert (answer.json["status"], answer.json["output_text"]) == ("completed", "In Rome.")
    assert answer.json["usage"]["llm_calls"] == 3
    assert again.json == answer.json


async def test_a_streamed_read_sends_every_event_in_order_and_ends(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        events = events_of(await it.post(PATH, asked(stream=True)))
    assert [name for name, _ in events] == [
        "long_read.in_progress",
        "long_read.chunk.completed",
        "long_read.chunk.completed",
        "long_read.output_text.delta",
        "long_read.completed",
    ]
    assert [data["sequence_number"] for _, data in events] == list(range(5))
    assert all(data["type"] == name for name, data in events)
    assert events[-1][1]["read"]["output_text"] == "In Rome."


async def test_a_quiet_stream_is_kept_alive(redis_url: str) -> None:
    async with (
        api(redis_url, reader, hang_at=1, heartbeat_s=0.05) as it,
        it.gateway.http.post(it.gateway.url + PATH, json=asked(stream=True)) as response,
    ):
        raw = b""
        while raw.count(b": keep-alive\n\n") < 2:
            raw += await response.content.readany()
        it.rig.engine.let_go.set()
        answer = Answer(response.status, response.headers, raw + await response.read())
    assert events_of(answer)[-1][0] == "long_read.completed"


WRONG: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"document": {"text": ""}}, 422, "document.text", "empty_document"),
    ({"document": {"text": " \n "}}, 422, "document.text", "empty_document"),
    ({"document": {"file_id": "file_1"}}, 501, None, "not_implemented"),
    ({"document": {}}, 422, "document", "validation_error"),
    ({"document": {"text": "x" * 2001}}, 413, "document.text", "document_too_large"),
    ({"question": " "}, 422, "question", "empty_question"),
    ({"question": "why " * 2000}, 422, "question", "question_too_long"),
    ({"chunk_tokens": 8000}, 422, "chunk_tokens", "window_exceeded"),
    ({"memory_tokens": 4096, "chunk_tokens": None}, 422, "memory_tokens", "window_exceeded"),
    ({"urls": ["x"]}, 400, "urls", "unknown_parameter"),
    ({"max_rereads": 17}, 422, "max_rereads", "validation_error"),
    ({"metadata": {"k": "x" * 513}}, 422, "metadata.k", "validation_error"),
    ({"metadata": {str(number): "" for number in range(17)}}, 422, "metadata", "validation_error"),
]


@pytest.mark.parametrize("background", [False, True])
async def test_a_read_that_cannot_work_is_refused_and_costs_nothing(redis_url: str, background: bool) -> None:
    async with api(redis_url, reader, max_document_chars=2000) as it:
        for fields, *refusal in WRONG:
            answer = await it.post(PATH, asked(background=background, **fields))
            assert [answer.status, answer.error["param"], answer.error["code"]] == refusal, fields
        assert it.rig.engine.calls == []
        assert (await it.get(PATH)).json["data"] == []


async def test_malformed_json_is_a_400(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        answer = await it.post(PATH, b'{"question": ')
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


ODD = {"half a character": rb"half \ud83d of it", "NUL": rb"nul \u0000 end", "one 2 MB word": b"w" * 2_000_000}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
async def test_odd_documents_are_read(redis_url: str, text: bytes) -> None:
    body = b'{"model": "m", "question": "Where?", "document": {"text": "' + text + b'"}}'
    async with api(redis_url, reader) as it:
        answer = await it.post(PATH, body)
    assert (answer.status, answer.json["status"]) == (200, "completed")


async def test_an_estimate_counts_what_the_read_then_costs(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        estimate = (await it.post(f"{PATH}/estimate", asked())).json
        assert it.rig.engine.calls == []
        read = (await it.post(PATH, asked())).json
    assert (estimate["chunks"], estimate["max_llm_calls"]) == (2, 3)
    assert read["usage"]["llm_calls"] == estimate["max_llm_calls"]
    assert estimate["max_input_tokens"] > estimate["document_tokens"] > 0


async def test_an_engine_that_refuses_fails_the_read_with_its_status(redis_url: str) -> None:
    async with api(redis_url, lambda body: 404) as it:
        answer = await it.post(PATH, asked())
        assert (answer.status, answer.error["type"]) == (404, "upstream_error")
        (read,) = (await it.get(PATH)).json["data"]
    assert read["status"] == "failed"
    assert "scripted 404" in read["error"]["message"]


async def test_an_engine_that_breaks_in_the_middle_of_a_stream_is_the_streams_last_event(redis_url: str) -> None:
    def breaks(body: Body) -> Reply:
        return 500 if "a memory" in last_text(body) else reader(body)

    async with api(redis_url, breaks) as it:
        events = events_of(await it.post(PATH, asked(stream=True)))
    names = [name for name, _ in events]
    assert names == ["long_read.in_progress", "long_read.chunk.completed", "long_read.failed"]
    assert events[-1][1]["read"]["error"]["type"] == "upstream_error"


async def test_a_client_that_leaves_aborts_the_engines_request(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=2) as it:
        waiting = asyncio.create_task(it.post(PATH, asked()))
        await it.rig.engine.hanging.wait()
        waiting.cancel()
        await eventually(lambda: it.rig.engine.active == 0)
        assert await statuses(it) == ["cancelled"]
        assert len(it.rig.engine.calls) == 2

        async def counted() -> bool:
            return await it.gateway.metric("upstream_abort_total") == 1

        await eventually(counted)


async def test_a_client_that_leaves_a_stream_aborts_the_engines_request(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=2, heartbeat_s=30) as it:
        url = it.gateway.url + PATH
        async with aiohttp.ClientSession() as http:
            response = await http.post(url, json=asked(stream=True))
            await it.rig.engine.hanging.wait()
            response.close()
        await eventually(lambda: it.rig.engine.active == 0)
        assert await statuses(it) == ["cancelled"]
        assert len(it.rig.engine.calls) == 2


async def statuses(it: Api) -> list[str]:
    """The statuses of all reads once none is in progress."""
    found: list[str] = []

    async def settled() -> bool:
        nonlocal found
        found = [read["status"] for read in (await it.get(PATH)).json["data"]]
        return "in_progress" not in found

    await eventually(settled)
    return found


async def test_a_foreground_read_can_be_cancelled_by_its_id(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=1) as it:
        waiting = asyncio.create_task(it.post(PATH, asked()))
        await it.rig.engine.hanging.wait()
        (read,) = (await it.get(PATH)).json["data"]
        await it.post(f"{PATH}/{read['id']}/cancel", {})
        it.rig.engine.let_go.set()
        answer = await waiting
    assert (answer.status, answer.json["status"]) == (200, "cancelled")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_a_foreground_read_that_is_ended_by_its_id_stops_while_the_engine_works(
    redis_url: str, end: str, stream: bool
) -> None:
    async with api(redis_url, reader, hang_at=2) as it:
        waiting = asyncio.create_task(it.post(PATH, asked(stream=stream)))
        await it.rig.engine.hanging.wait()
        (read,) = (await it.get(PATH)).json["data"]
        if end == "cancel":
            await it.post(f"{PATH}/{read['id']}/cancel", {})
        else:
            await it.call("DELETE", f"{PATH}/{read['id']}")
        answer = await waiting
        await eventually(lambda: it.rig.engine.active == 0)
        assert len(it.rig.engine.calls) == 2
    if stream:
        names = [name for name, _ in events_of(answer)]
        ending = "long_read.cancelled" if end == "cancel" else "long_read.failed"
        assert names == ["long_read.in_progress", "long_read.chunk.completed", ending]
    elif end == "cancel":
        assert (answer.status, answer.json["status"], answer.json["usage"]["llm_calls"]) == (200, "cancelled", 1)
    else:
        assert answer.status == 404


async def test_reads_are_listed_newest_first_in_pages(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        ids: list[str] = []
        for _ in range(3):
            ids.append(await queued(it))
            await asyncio.sleep(0.002)
        first = (await it.get(f"{PATH}?limit=2")).json
        second = (await it.get(f"{PATH}?limit=2&after={first['last_id']}")).json
        unknown = await it.get(f"{PATH}?after=lr_nobody")
    assert [read["id"] for read in first["data"]] == ids[:0:-1]
    assert (first["has_more"], second["has_more"]) == (True, False)
    assert [read["id"] for read in second["data"]] == ids[:1]
    assert unknown.status == 404


async def test_ids_of_memory_events_are_no_reads(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        event_id = await it.rig.write("x")
        assert (await it.get(f"{PATH}/{event_id}")).status == 404


async def test_redis_gone_in_the_middle_of_a_read_is_a_503_and_stops_the_engine(redis_url: str) -> None:
    server = RedisServer.start()
    async with api(server.url, reader, hang_at=1) as it:
        waiting = asyncio.create_task(it.post(PATH, asked()))
        await it.rig.engine.hanging.wait()
        server.stop()
        it.rig.engine.let_go.set()
        answer = await waiting
        assert (answer.status, answer.error["type"]) == (503, "upstream_error")
        assert len(it.rig.engine.calls) == 1


async def test_redis_gone_in_the_middle_of_a_stream_is_its_last_event(redis_url: str) -> None:
    server = RedisServer.start()
    async with api(server.url, reader, hang_at=1) as it:
        waiting = asyncio.create_task(it.post(PATH, asked(stream=True)))
        await it.rig.engine.hanging.wait()
        server.stop()
        it.rig.engine.let_go.set()
        events = events_of(await waiting)
    assert [name for name, _ in events] == ["long_read.in_progress", "long_read.failed"]
    assert events[-1][1]["sequence_number"] == 1


async def test_redis_gone_under_a_follower_is_an_error_event(redis_url: str) -> None:
    server = RedisServer.start()
    async with api(server.url, reader) as it:
        read_id = await queued(it)
        async with it.gateway.http.get(f"{it.gateway.url}{PATH}/{read_id}?stream=true") as response:
            first = await response.content.readuntil(b"\n\n")
            server.stop()
            events = events_of(Answer(response.status, response.headers, first + await response.read()))
    assert [name for name, _ in events] == ["long_read.queued", "error"]
    assert events[-1][1]["error"]["type"] == "upstream_error"


async def test_a_finished_reads_memory_becomes_a_memory_of_the_user(redis_url: str) -> None:
    async with api(redis_url, reader) as it, it.rig.working():
        await it.post(PATH, asked(save_to_memory={"user_id": "alice"}))
        await eventually(lambda: it.rig.store.texts() == ["a memory"])
        (event,) = (await it.get("/v1/memory/events?user_id=alice")).json["events"]
        with suppress(AssertionError):
            await it.rig.event(event["event_id"])
    [key] = [item.key for _, item in it.rig.store.items.values()]
    assert key.endswith(": Where?")
