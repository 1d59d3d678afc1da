"""OpenAI's own client against background responses, which a worker makes."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, RateLimitError
from openai.types.responses import Response

from gateway.queue import Journal
from tests.fakes.job_engine import Body, Reply
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import Api, api
from tests.gateway.redis_view import connected, keys, keys_that_hold
from tests.gateway.rig import eventually, script
from tests.gateway.worker_process import worker_process

SECRET = "quagga-4711"
CARD = "4111 1111 1111 1111"


@asynccontextmanager
async def background(
    redis_url: str, answer: Callable[[Body], Reply], *, hang_at: int | None = None, **changes: Any
) -> AsyncGenerator[tuple[Api, AsyncOpenAI]]:
    """An API without a worker, and OpenAI's client of it."""
    async with (
        api(redis_url, answer, hang_at=hang_at, **changes) as it,
        AsyncOpenAI(base_url=it.gateway.url + "/v1", api_key="unused", max_retries=0) as sdk,
    ):
        yield it, sdk


async def asked(sdk: AsyncOpenAI, text: Any = "Hi.", **fields: Any) -> Response:
    """A queued response."""
    return cast(Response, await sdk.responses.create(model="m", input=text, background=True, **fields))


async def ended(sdk: AsyncOpenAI, response_id: str) -> Response:
    """The response once it is over."""

    async def is_over() -> bool:
        return (await sdk.responses.retrieve(response_id)).status not in ("queued", "in_progress")

    await eventually(is_over)
    return await sdk.responses.retrieve(response_id)


async def test_a_response_waits_for_a_worker_and_is_then_complete(redis_url: str) -> None:
    async with background(redis_url, script("Hello."), hang_at=1) as (it, sdk):
        queued = await asked(sdk, metadata={"n": "1"})
        assert (queued.status, queued.background, queued.output) == ("queued", True, [])
        assert (await sdk.responses.retrieve(queued.id)).status == "queued"
        async with it.rig.working():
            await it.rig.engine.hanging.wait()
            assert (await sdk.responses.retrieve(queued.id)).status == "in_progress"
            it.rig.engine.let_go.set()
            found = await ended(sdk, queued.id)
        assert (found.status, found.output_text, found.background) == ("completed", "Hello.", True)
        assert (found.id, found.created_at, found.metadata) == (queued.id, queued.created_at, {"n": "1"})
        assert found.usage is not None
        assert found.usage.total_tokens == 12
        items = (await sdk.responses.input_items.list(queued.id)).data
        assert [item.type for item in items] == ["message"]
        async with connected(redis_url) as redis:
            assert await keys(redis, "*:journal:*") == []


async def test_a_repetition_queues_the_job_of_a_process_that_died_before_it_did(redis_url: str) -> None:
    again = {"extra_headers": {"Idempotency-Key": "k"}}
    async with background(redis_url, script("Hello.")) as (it, sdk):
        queued = await asked(sdk, **again)
        await it.gateway.app.state.background.forget_job(queued.id)
        async with connected(redis_url) as redis:
            [record] = await keys(redis, "memloop:once:*")
            await redis.hdel(record, "status", "kind", "answer", "until")
        assert (await asked(sdk, **again)).id == queued.id
        async with it.rig.working():
            assert (await ended(sdk, queued.id)).output_text == "Hello."


async def test_what_it_continues_is_read_when_it_is_queued(redis_url: str) -> None:
    async with background(redis_url, script("Rex.", "A dog.", "Yes.")) as (it, sdk):
        first = await sdk.responses.create(model="m", input="Name?")
        queued = await asked(sdk, "What is it?", previous_response_id=first.id)
        await sdk.responses.delete(first.id)
        async with it.rig.working():
            assert (await ended(sdk, queued.id)).output_text == "A dog."
        said = [message["content"] for message in it.rig.engine.calls[-1]["messages"]]
        assert said == ["Name?", "Rex.", "What is it?"]


async def test_its_items_are_added_to_its_conversation(redis_url: str) -> None:
    async with background(redis_url, script("Fine.")) as (it, sdk), it.rig.working():
        conversation = await sdk.conversations.create()
        queued = await asked(sdk, "How are you?", conversation=conversation.id)
        assert (await ended(sdk, queued.id)).conversation is not None
        items = (await sdk.conversations.items.list(conversation.id, order="asc")).data
        assert [item.content[0].text for item in items] == ["How are you?", "Fine."]  # type: ignore[union-attr]


async def test_its_turn_is_remembered(redis_url: str) -> None:
    async with background(redis_url, script("Noted.")) as (it, sdk):
        queued = await asked(sdk, "I like tea.", extra_body={"memory": {"user_id": "alice"}})
        async with it.rig.working():
            found = (await ended(sdk, queued.id)).to_dict()
            memory: Any = found["memory"]
            await it.rig.event(memory["write_event_id"])


async def test_a_response_is_followed_from_its_creation_and_again_from_any_event(redis_url: str) -> None:
    async with background(redis_url, script("Hello.")) as (it, sdk), it.rig.working():
        stream = await sdk.responses.create(model="m", input="Hi.", background=True, stream=True)
        events = [event async for event in stream]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events] == [
            "response.created",
            "response.queued",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        last: Any = events[-1]
        assert last.response.output_text == "Hello."
        again = await sdk.responses.retrieve(last.response.id, stream=True, starting_after=4)
        assert [event async for event in again] == events[5:]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_response_is_cancelled(redis_url: str, begun: bool) -> None:
    async with background(redis_url, script("Hello."), hang_at=1) as (it, sdk):
        queued = await asked(sdk)
        if begun:
            async with it.rig.working():
                await it.rig.engine.hanging.wait()
                await sdk.responses.cancel(queued.id)
                assert (await ended(sdk, queued.id)).status == "cancelled"
                await eventually(lambda: it.rig.engine.active == 0)
        else:
            assert (await sdk.responses.cancel(queued.id)).status == "cancelled"
        assert (await sdk.responses.cancel(queued.id)).status == "cancelled"
        assert len(it.rig.engine.calls) == int(begun)


async def test_only_a_background_response_is_cancelled_or_followed_again(redis_url: str) -> None:
    async with background(redis_url, script("Hello.")) as (_, sdk):
        made = await sdk.responses.create(model="m", input="Hi.")
        with pytest.raises(BadRequestError):
            await sdk.responses.cancel(made.id)
        with pytest.raises(BadRequestError):
            await sdk.responses.retrieve(made.id, stream=True)


async def test_what_the_engine_refuses_has_failed(redis_url: str) -> None:
    async with background(redis_url, script(400)) as (it, sdk), it.rig.working():
        found = await ended(sdk, (await asked(sdk)).id)
        assert (found.status, found.output) == ("failed", [])
        assert found.error is not None
        assert (found.error.code, "scripted 400" in found.error.message) == ("server_error", True)


async def test_an_outage_of_the_engine_delays_the_response(redis_url: str) -> None:
    async with background(redis_url, script(503, 503, "Hello.")) as (it, sdk), it.rig.working():
        assert (await ended(sdk, (await asked(sdk)).id)).output_text == "Hello."


async def test_a_killed_workers_response_is_made_by_another_once(redis_url: str) -> None:
    async with background(redis_url, script("Hello."), hang_at=1) as (it, sdk):
        queued = await asked(sdk, "I like tea.", extra_body={"memory": {"user_id": "alice"}})
        async with worker_process(it.rig) as process:
            async with asyncio.timeout(PATIENCE_S):
                await it.rig.engine.hanging.wait()
            await process.signalled(signal.SIGKILL)
        it.rig.engine.hang_at = None
        async with it.rig.working():
            found = await ended(sdk, queued.id)
        assert found.output_text == "Hello."
        events = [event async for event in await sdk.responses.retrieve(queued.id, stream=True)]
        assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_the_answer_of_a_run_that_crashed_is_used_by_the_next(redis_url: str) -> None:
    async with background(redis_url, script("First.", "Second.")) as (it, sdk):
        queued = await asked(sdk)
        answer = '{"choices": [{"message": {"role": "assistant", "content": "Journaled."}}]}'
        await Journal(it.rig.work.state, queued.id).keep("answer", answer)
        async with it.rig.working():
            assert (await ended(sdk, queued.id)).output_text == "Journaled."
        assert it.rig.engine.calls == []


@pytest.mark.parametrize("how", ["deleted", "erased"])
async def test_a_response_that_is_gone_leaves_nothing_and_is_not_made(redis_url: str, how: str) -> None:
    async with background(redis_url, script("Hello.")) as (it, sdk):
        queued = await asked(sdk, SECRET, user="alice")
        if how == "deleted":
            await sdk.responses.delete(queued.id)
        else:
            assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        with pytest.raises(NotFoundError):
            await sdk.responses.retrieve(queued.id)
        async with connected(redis_url) as redis:
            assert await keys_that_hold(redis, SECRET.encode()) == []
        async with it.rig.working():
            assert (await ended(sdk, (await asked(sdk)).id)).status == "completed"
        assert len(it.rig.engine.calls) == 1


async def test_a_response_that_an_erasure_overtakes_is_not_kept(redis_url: str) -> None:
    async with background(redis_url, script(SECRET), hang_at=1) as (it, sdk), it.rig.working():
        queued = await asked(sdk, SECRET, user="alice")
        await it.rig.engine.hanging.wait()
        assert (await it.call("DELETE", "/v1/memory?user_id=alice")).status == 200
        it.rig.engine.let_go.set()
        await eventually(lambda: it.rig.engine.active == 0)
        with pytest.raises(NotFoundError):
            await sdk.responses.retrieve(queued.id)
        async with connected(redis_url) as redis:
            assert await keys_that_hold(redis, SECRET.encode()) == []


async def test_secrets_are_redacted_in_the_response_and_its_events(redis_url: str) -> None:
    async with background(redis_url, script(f"You said {CARD}.")) as (it, sdk), it.rig.working():
        found = await ended(sdk, (await asked(sdk, f"My card is {CARD}.")).id)
        assert found.output_text.startswith("You said ")
        async with connected(redis_url) as redis:
            assert await keys_that_hold(redis, CARD.encode()) == []


async def test_a_repeated_key_queues_one_response(redis_url: str) -> None:
    async with background(redis_url, script("Hello.")) as (it, sdk):
        headers = {"Idempotency-Key": "k"}
        first, again = [await asked(sdk, extra_headers=headers) for _ in range(2)]
        assert first.id == again.id
        assert [one.jobs for one in await it.gateway.app.state.jobs.depths() if one.queue == "responses"] == [1]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": False}, "store"),
        ({"memory": {"user_id": "a", "long_context": "auto"}}, "memory.long_context"),
        ({"tools": [{"type": "mcp"}]}, "tools[0].type"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"input": []}, "input"),
    ],
    ids=str,
)
async def test_what_no_worker_can_answer_is_refused_at_once(
    redis_url: str, fields: dict[str, object], param: str
) -> None:
    async with background(redis_url, script("Hello.")) as (it, _):
        body = {"model": "m", "input": "Hi.", "background": True, **fields}
        refused = await it.post("/v1/responses", body)
        assert (refused.status in (400, 404), refused.error["param"]) == (True, param)
        assert refused.error["code"] not in {None, "invalid_request"}
        assert [one.jobs for one in await it.gateway.app.state.jobs.depths() if one.queue == "responses"] == [0]


async def test_a_full_tenant_queues_nothing(redis_url: str) -> None:
    async with background(redis_url, script("Hello."), tenant_response_bytes=6000) as (it, sdk):
        await asked(sdk, "x" * 1000)
        with pytest.raises(RateLimitError):
            await asked(sdk, "x" * 4000)
        async with it.rig.working():
            await eventually(lambda: len(it.rig.engine.calls) == 1)


async def test_an_answer_without_room_has_failed(redis_url: str) -> None:
    async with background(redis_url, script("y" * 6000), tenant_response_bytes=6000) as (it, sdk), it.rig.working():
        found = await ended(sdk, (await asked(sdk)).id)
        assert found.status == "failed"
        assert found.error is not None
        assert found.error.code == "rate_limit_exceeded"
