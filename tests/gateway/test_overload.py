"""A process that is full says so before it reads a body, and long reads never take the last room."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from pydantic import ValidationError

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import FakeEngine, Hangs
from tests.gateway.api_rig import Api, api
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked, reader
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway


@asynccontextmanager
async def streaming(gateway: Gateway, engine: FakeEngine) -> AsyncGenerator[None]:
    """A chat that goes on meanwhile."""
    engine.will(Hangs("Hel"))
    async with gateway.http.post(gateway.url + CHAT, json=question(stream=True)) as stream:
        await stream.content.readany()
        yield


@asynccontextmanager
async def reading(it: Api) -> AsyncGenerator[None]:
    """A read that goes on meanwhile."""
    task = asyncio.create_task(it.post(READ, asked()))
    await it.rig.engine.hanging.wait()
    yield
    it.rig.engine.let_go.set()
    assert (await task).status == 200


def is_full(answer: Answer, retry_after_s: str) -> bool:
    told = (answer.error["type"], answer.error["code"], answer.headers["Retry-After"])
    return answer.status == 503 and told == ("overloaded_error", "overloaded", retry_after_s)


async def test_requests_beyond_the_room_get_retry_after(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings.model_copy(update={"max_active_requests": 1})) as gateway:
        async with streaming(gateway, engine):
            refused = await gateway.chat()
        await gateway.until_served()
    assert is_full(refused, "1")


async def test_reads_leave_room_for_chats(redis_url: str) -> None:
    async with api(redis_url, reader, hang_at=1, max_active_requests=2, max_batch_requests=1) as it, reading(it):
        second = await it.post(READ, asked())
        search = await it.post("/v1/memory/search", {"query": "tea", "user_id": "alice"})
    assert is_full(second, "5")
    assert search.status == 200


async def test_chats_may_take_all_the_room(settings: GatewaySettings, engine: FakeEngine) -> None:
    own = settings.model_copy(update={"max_active_requests": 1})
    async with running_gateway(own) as gateway, streaming(gateway, engine):
        assert is_full(await gateway.post(READ, asked()), "5")


async def test_bodies_over_what_fits_together_are_refused_unread(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings.model_copy(update={"max_active_bytes": 2_000})) as gateway:
        async with streaming(gateway, engine):
            assert is_full(await gateway.chat("x" * 2_000), "1")
        assert len(engine.received) == 1


@pytest.mark.parametrize(("size", "status"), [(1_000, 200), (2_500, 503)])
async def test_a_body_of_unknown_length_takes_room_as_it_comes(
    settings: GatewaySettings, size: int, status: int
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        body = orjson.dumps(question("x" * size))
        for start in range(0, len(body), 500):
            yield body[start : start + 500]

    changes = {"max_active_bytes": 2_000, "max_body_bytes": 3_000}
    async with (
        running_gateway(settings.model_copy(update=changes)) as gateway,
        gateway.http.post(gateway.url + CHAT, data=pieces(), headers={"Content-Type": "application/json"}) as response,
    ):
        assert response.status == status


def test_settings_that_leave_no_room_for_a_body_are_refused() -> None:
    with pytest.raises(ValidationError, match="MAX_ACTIVE_BYTES"):
        GatewaySettings.model_validate({"max_active_bytes": 10, "max_body_bytes": 11})
