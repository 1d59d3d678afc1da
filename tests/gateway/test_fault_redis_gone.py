"""Redis is killed under a running gateway and comes back: chats go on without writes, and are remembered again."""

from collections.abc import Iterator

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.redis_server import RedisServer
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, question, running_gateway

MEMORY = {"user_id": "u1"}
UNREAD = "The queue of memory writes could not be read; this reply may lack turns that are not memories yet."
NOT_QUEUED = "Queuing the memory write failed; this turn will not be remembered."


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis of the test's own."""
    server = RedisServer.start()
    yield server
    server.stop()


async def test_chats_go_on_without_writes_and_are_remembered_when_redis_is_back(
    settings: GatewaySettings, store: FakeStore, redis: RedisServer
) -> None:
    limited = {"redis_url": redis.url, "requests_per_minute": 100}
    own = GatewaySettings.model_validate({**settings.model_dump(), **limited})
    store.finds = [memory("m1", "Alice moved to Oslo.")]
    async with running_gateway(own) as gateway:
        assert (await gateway.chat(memory=MEMORY)).json["memory"]["error"] is None
        redis.kill()

        chat = await gateway.chat(memory=MEMORY)
        assert chat.json["choices"][0]["message"]["content"] == "Hello."
        told = chat.json["memory"]
        assert (told["retrieved"], told["write_event_id"], told["error"]) == (["m1"], None, f"{UNREAD} {NOT_QUEUED}")
        assert await gateway.metric("memory_turns_not_queued_total") == 1
        stream = await gateway.chat(stream=True, memory=MEMORY)
        assert (stream.status, stream.streamed_text, stream.chunks[-1]["memory"]["error"]) == (
            200,
            "Hello.",
            f"{UNREAD} {NOT_QUEUED}",
        )
        search = await gateway.post("/v1/memory/search", {"query": "Where?", "user_id": "u1"})
        assert (search.status, len(search.json["results"]), search.json["pending_complete"]) == (200, 1, False)
        assert await gateway.metric("memory_pending_unread_total") == 3
        assert await gateway.metric("rate_limit_skipped_total") >= 2

        add = {"messages": [{"role": "user", "content": "x"}], "user_id": "u1"}
        write = await gateway.post("/v1/memory/add", add)
        once = await gateway.post(CHAT, question(), headers={"Idempotency-Key": "k"})
        assert [(answer.status, answer.error["code"]) for answer in (write, once)] == [(503, "unavailable")] * 2
        assert "Retry-After" in write.headers
        reason = (await gateway.get("/readyz")).json["dependencies"]["redis"]
        assert reason == "Redis cannot be reached, or accepts no writes now."

        back = RedisServer.start(port=redis.port)
        try:

            async def remembered() -> bool:
                return (await gateway.chat(memory=MEMORY)).json["memory"]["write_event_id"] is not None

            await eventually(remembered)
            assert (await gateway.post("/v1/memory/add", add)).status == 202
        finally:
            back.stop()
