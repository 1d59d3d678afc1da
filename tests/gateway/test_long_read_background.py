"""``/v1/long-read`` in the background: the worker, event streams, cancelling, deleting."""

import asyncio

import pytest

from tests.gateway.api_rig import Api, api, events_of
from tests.gateway.long_reads import PATH, asked, ended, followed, queued, reader
from tests.gateway.redis_view import keys
from tests.gateway.rig import eventually


async def test_a_background_read_is_done_by_the_worker_with_the_same_result(redis_url: str) -> None:
    async with api(redis_url, reader) as it, it.rig.working():
        foreground = (await it.post(PATH, asked())).json
        read = await ended(it, await queued(it))
    same = ("status", "output_text", "memory", "usage", "progress", "subquestions")
    assert {name: read[name] for name in same} == {name: foreground[name] for name in same}


async def test_a_background_reads_events_can_be_followed_to_the_end(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        read_id = await queued(it)
        following = asyncio.create_task(followed(it, read_id))
        await asyncio.sleep(0.1)
        async with it.rig.working():
            events = await following
    assert [name.removeprefix("long_read.") for name, _ in events] == [
        "queued",
        "in_progress",
        "chunk.completed",
        "chunk.completed",
        "output_text.delta",
        "completed",
    ]
    assert [data["sequence_number"] for _, data in events] == list(range(6))


async def test_a_stream_resumes_after_the_number_that_the_client_saw_last(redis_url: str) -> None:
    async with api(redis_url, reader) as it, it.rig.working():
        read_id = await queued(it)
        await ended(it, read_id)
        for starting_after in (-1, 0, 3, 5, 99):
            events = await followed(it, read_id, starting_after)
            assert [data["sequence_number"] for _, data in events] == list(range(starting_after + 1, 6))


async def test_a_background_read_can_stream_from_its_own_request(redis_url: str) -> None:
    async with api(redis_url, reader) as it, it.rig.working():
        events = events_of(await it.post(PATH, asked(background=True, stream=True)))
    assert (events[0][0], events[-1][0]) == ("long_read.queued", "long_read.completed")


async def test_a_read_that_is_given_back_goes_on_where_it_was_and_repeats_no_event(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=2, stop_wait_s=0) as it:
        read_id = await queued(it)
        async with it.rig.working():
            await it.rig.engine.hanging.wait()
        assert (await it.get(f"{PATH}/{read_id}")).json["progress"]["chunks_done"] == 1
        async with it.rig.working():
            read = await ended(it, read_id)
        events = await followed(it, read_id)
    assert (read["status"], read["usage"]["llm_calls"]) == ("completed", 3)
    assert len(it.rig.engine.calls) == 4  # the call that was cut off was made again, the one before it was not
    assert [data["sequence_number"] for _, data in events] == list(range(6))


async def test_an_engine_outage_only_delays_a_background_read(redis_url: str) -> None:
    down = iter([503, 503])
    async with api(redis_url, lambda body: next(down, None) or reader(body)) as it, it.rig.working():
        read = await ended(it, await queued(it))
    assert (read["status"], read["output_text"]) == ("completed", "In Rome.")


@pytest.mark.parametrize("status", [400, 404], ids=str)
async def test_a_background_read_that_the_engine_refuses_fails_at_once(redis_url: str, status: int) -> None:
    async with api(redis_url, lambda body: status) as it, it.rig.working():
        read_id = await queued(it)
        read = await ended(it, read_id)
        events = await followed(it, read_id)
    assert read["status"] == "failed"
    assert f"scripted {status}" in read["error"]["message"]
    assert events[-1][0] == "long_read.failed"
    assert len(it.rig.engine.calls) == 1


async def test_a_waiting_read_is_cancelled_at_once_and_never_run(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        read_id = await queued(it)
        first = (await it.post(f"{PATH}/{read_id}/cancel", {})).json
        second = (await it.post(f"{PATH}/{read_id}/cancel", {})).json
        async with it.rig.working():
            await asyncio.sleep(0.3)
        events = await followed(it, read_id)
    assert (first["status"], second) == ("cancelled", first)
    assert it.rig.engine.calls == []
    assert [name for name, _ in events] == ["long_read.queued", "long_read.cancelled"]


async def test_cancelling_a_running_read_aborts_the_engines_request(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=2) as it, it.rig.working():
        read_id = await queued(it)
        await it.rig.engine.hanging.wait()
        await it.post(f"{PATH}/{read_id}/cancel", {})
        read = await ended(it, read_id)
        await eventually(lambda: it.rig.engine.active == 0)
        events = await followed(it, read_id)
    assert (read["status"], read["progress"]["chunks_done"]) == ("cancelled", 1)
    assert events[-1][0] == "long_read.cancelled"
    assert len(it.rig.engine.calls) == 2


async def test_cancelling_a_finished_read_changes_nothing(redis_url: str) -> None:
    async with api(redis_url, reader) as it:
        read = (await it.post(PATH, asked())).json
        assert (await it.post(f"{PATH}/{read['id']}/cancel", {})).json == read


async def test_deleting_a_running_read_stops_it_and_leaves_no_trace(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=2) as it, it.rig.working():
        read_id = await queued(it)
        await it.rig.engine.hanging.wait()
        deleted = await it.call("DELETE", f"{PATH}/{read_id}")
        assert deleted.json == {"id": read_id, "object": "long_read", "deleted": True}
        await eventually(lambda: it.rig.engine.active == 0)
        assert (await it.get(f"{PATH}/{read_id}")).status == 404
        await eventually(lambda: _is_gone(it, read_id))


async def _is_gone(it: Api, read_id: str) -> bool:
    """Whether no key names the read; the lane's lock stays until the worker has let go."""
    return await keys(it.rig.work.state, f"*{read_id}*") == []
