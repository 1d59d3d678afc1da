"""``/v1/admin/usage``: every tenant's tokens by model, hour and day, and what they cost."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from redis.asyncio import Redis

from gateway.metrics import Metrics
from gateway.usage.routes import KEEP_DAYS, Ledger
from memloop.wire.base import spender
from memloop_service import new_registry
from memloop_state.connecting import connect
from tests.fakes.job_engine import add_memory
from tests.fakes.processes import PATIENCE_S
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY, Api, api
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked, reader
from tests.gateway.redis_view import command, connected, keys
from tests.gateway.rig import eventually, script

OPERATOR = {"Authorization": f"Bearer {OPERATOR_KEY}"}
ALICE = {"Authorization": f"Bearer {ALICE_KEY}"}
ASKED: Mapping[str, Mapping[str, Any]] = {
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hi."}]},
    "/v1/messages": {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "Hi."}]},
    "/v1/responses": {"model": "m", "input": "Hi.", "store": False},
}
MONDAY = 1_767_571_200  # 2026-01-05T00:00:00Z
HOUR, DAY = 3600, 86_400


async def usage(it: Api, query: str = "?tenant=a") -> list[Any]:
    return (await it.call("GET", f"/v1/admin/usage{query}", headers=OPERATOR)).json["data"]


async def spent(it: Api, calls: int) -> Any:
    """The one entry of tenant a, once it has this many calls."""

    async def there() -> bool:
        return sum(entry["calls"] for entry in await usage(it)) == calls

    await eventually(there)
    (entry,) = await usage(it, "?tenant=a&by=day")
    return entry


async def counted(
    redis: Redis, at: int, *, tenant: str = "a", metrics: Metrics | None = None, wait_s: float = PATIENCE_S
) -> None:
    """Count one call of 7 and 3 tokens."""
    metrics = metrics or Metrics(new_registry())
    token = spender.set(tenant)
    async with Ledger(redis, metrics, now=lambda: at, wait_s=wait_s).keeping():
        metrics.count_tokens("input", "chat", "m", 7)
        metrics.count_tokens("output", "chat", "m", 3)
    spender.reset(token)


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis of the test's own."""
    server = RedisServer.start()
    yield server
    server.stop()


@pytest.mark.parametrize("path", ASKED)
async def test_an_answers_tokens_are_the_tenants(redis_url: str, path: str) -> None:
    async with api(redis_url, script("Hello."), api_keys=OPERATED, prices={"m": (2.0, 8.0)}) as it:
        assert (await it.call("POST", path, ASKED[path], headers=ALICE)).status == 200
        entry = await spent(it, 1)
        assert await usage(it, "?tenant=b") == []
    assert entry["at"] % DAY == 0
    assert time.time() - 2 * DAY < entry["at"] <= time.time()
    del entry["at"]
    assert entry == {"model": "m", "calls": 1, "input_tokens": 10, "output_tokens": 2, "cost": 36 / 1_000_000}


async def test_the_writers_tokens_are_those_of_the_tenant_whose_memory_it_writes(redis_url: str) -> None:
    told = {"messages": [{"role": "user", "content": "I like tea."}], "user_id": "alice"}
    async with api(redis_url, script(add_memory("Alice likes tea.")), api_keys=OPERATED) as it, it.rig.working():
        await it.call("POST", "/v1/memory/add", told, headers=ALICE)
        entry = await spent(it, 1)
        assert await usage(it, "?tenant=b") == []
    assert (entry["input_tokens"], entry["output_tokens"], entry["cost"]) == (10, 2, None)


@pytest.mark.parametrize("background", [False, True])
async def test_every_call_of_a_long_read_counts(redis_url: str, background: bool) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it, it.rig.working():
        await it.call("POST", READ, asked(background=background), headers=ALICE)
        assert (await spent(it, 3))["input_tokens"] == 30


async def test_a_name_of_a_model_that_a_client_makes_up_is_not_kept(redis_url: str) -> None:
    async with api(redis_url, script("Hello."), api_keys=OPERATED) as it:
        body = {**ASKED["/v1/chat/completions"], "model": "made-up"}
        await it.call("POST", "/v1/chat/completions", body, headers=ALICE)
        assert (await spent(it, 1))["model"] == "m"


async def test_an_answer_covers_a_bounded_time(redis_url: str) -> None:
    async with api(redis_url, script("Hello."), api_keys=OPERATED) as it:
        for query in ("after=0", f"after={MONDAY}&before={MONDAY + 8 * DAY}", "after=0&by=day", "by=week", "after=-1"):
            answer = await it.call("GET", f"/v1/admin/usage?{query}", headers=OPERATOR)
            assert answer.status == 422, query
        for query in (f"after={MONDAY}&before=0", "after=100000000000", "after=0&before=0", "before=100000000000"):
            assert await usage(it, f"?{query}") == []


async def test_hours_add_up_to_days(redis_url: str) -> None:
    async with api(redis_url, script("Hello."), api_keys=OPERATED) as it, connected(redis_url) as redis:
        for at in (MONDAY - 1, MONDAY, MONDAY + HOUR, MONDAY + DAY):
            await counted(redis, at)
        by_hour = await usage(it, f"?tenant=a&after={MONDAY}&before={MONDAY + DAY}")
        by_day = await usage(it, f"?tenant=a&after={MONDAY}&before={MONDAY + 2 * DAY}&by=day")
    assert [(row["at"], row["input_tokens"]) for row in by_hour] == [(MONDAY, 7), (MONDAY + HOUR, 7)]
    assert [(row["at"], row["calls"]) for row in by_day] == [(MONDAY, 2), (MONDAY + DAY, 1)]


async def test_a_day_is_one_key_that_expires(redis_url: str) -> None:
    async with connected(redis_url) as redis:
        for hour in range(24):
            await counted(redis, MONDAY + hour * HOUR)
        assert await keys(redis) == ["memloop:usage:a:2026-01-05"]
        left_s = await command(redis, "TTL", "memloop:usage:a:2026-01-05")
        assert await command(redis, "HLEN", "memloop:usage:a:2026-01-05") == 24 * 3
    assert KEEP_DAYS * DAY < left_s <= (KEEP_DAYS + 1) * DAY


async def test_what_no_tenant_asked_for_is_not_counted(redis_url: str) -> None:
    async with connected(redis_url) as redis:
        await counted(redis, MONDAY, tenant="")
        assert await keys(redis) == []


async def test_without_redis_counts_are_lost_and_reported(redis: RedisServer) -> None:
    registry = new_registry()
    async with connected(redis.url) as client:
        redis.kill()
        await counted(client, MONDAY, metrics=Metrics(registry))
    assert registry.get_sample_value("gateway_usage_lost_total") == 1


async def test_a_redis_that_does_not_answer_holds_no_process_that_stops() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    registry = new_registry()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, asyncio.timeout(PATIENCE_S):
        url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with connect(url, connect_timeout_s=600, read_timeout_s=600) as client:
            await counted(client, MONDAY, metrics=Metrics(registry), wait_s=0.05)
    assert registry.get_sample_value("gateway_usage_lost_total") == 1
