"""Every quota of a tenant, raced by thirty requests at two gateways on one Redis: never more than the limit is taken.

A refused request leaves nothing behind, and one that fails gives its share back.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.access.key_records import KEYS_OF_A_TENANT
from gateway.files.blobs import Blobs
from gateway.files.storage import Storage
from gateway.policy.policies import MOST_OF_A_TENANT
from gateway.webhooks.deliveries import MOST_HOOKS
from memloop.wire.errors import TooLarge
from memloop_state.contents import Quota
from memloop_state.credentials import api_keys_of
from memloop_state.steps import Partitions
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.real_store import real_store
from tests.gateway.file_uploads import FILES, objects, sent
from tests.gateway.redis_view import connected, keys, keys_that_hold
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import Answer, Gateway, running_gateway

AT_ONCE, LIMIT = 30, 5
RESPONSES, CONVERSATIONS, VECTOR_STORES = "/v1/responses", "/v1/conversations", "/v1/vector_stores"
TEXT: Final = "raced " * 300
"""1,800 characters: what a response's input holds."""


def echo(body: Body) -> Reply:
    """Answer shortly; refuse what asks for it."""
    return 400 if "DIE" in str(body["messages"]) else "Fine."


@dataclass(frozen=True)
class Pair:
    """Two gateways on one Redis and one storage."""

    gateways: tuple[Gateway, Gateway]
    engine: EngineServer
    storage: Path

    @property
    def one(self) -> Gateway:
        return self.gateways[0]

    async def race(self, send: Callable[[Gateway, int], Awaitable[Answer]]) -> list[Answer]:
        """The answers to thirty requests at once, half at each gateway."""
        return await asyncio.gather(*(send(self.gateways[number % 2], number) for number in range(AT_ONCE)))


@asynccontextmanager
async def pair(redis_url: str, folder: Path, **changes: object) -> AsyncGenerator[Pair]:
    """Two gateways, no worker."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(echo))
        engine.latency_s = 0.05
        store = await stack.enter_async_context(real_store(redis_url, folder / "store"))
        storage = folder / "storage"
        settings = settings_for(
            redis_url, engine_url=engine.url, store_url=store, storage_url=storage.as_uri(), **changes
        )
        opened = [await stack.enter_async_context(running_gateway(settings)) for _ in range(2)]
        yield Pair((opened[0], opened[1]), engine, storage)


def statuses(answers: list[Answer]) -> Counter[tuple[int, str]]:
    """How many answers there are of each status, with its code."""
    return Counter((one.status, "" if one.status < 300 else one.error["code"]) for one in answers)


async def uploaded(gateway: Gateway, number: int) -> Answer:
    """Upload a file of a content of its own."""
    return await sent(gateway, f"{number:03} {TEXT}".encode(), name=f"{number}.txt")


async def no_reservation(pair: Pair) -> bool:
    """Whether no upload holds room."""
    return await keys(pair.one.redis, "*files-reserved*") == []


async def reserved(pair: Pair) -> bool:
    """Whether an upload holds room."""
    return not await no_reservation(pair)


async def test_no_more_files_are_taken_than_the_quota_allows(redis_url: str, tmp_path: Path) -> None:
    async with pair(redis_url, tmp_path, tenant_files=LIMIT) as it:
        answers = statuses(await it.race(uploaded))
        assert answers == {(200, ""): LIMIT, (413, "file_quota_exceeded"): AT_ONCE - LIMIT}
        listed = (await it.one.get(FILES)).json["data"]
        assert (len(listed), len(objects(it.storage))) == (LIMIT, LIMIT)
        assert await no_reservation(it)
        async with it.one.http.delete(f"{it.one.url}{FILES}/{listed[0]['id']}") as deleted:
            assert deleted.status == 200
        assert (await uploaded(it.one, 99)).status == 200


async def test_no_more_bytes_of_files_are_taken_than_the_quota_allows(redis_url: str, tmp_path: Path) -> None:
    size = len(f"000 {TEXT}")
    async with pair(redis_url, tmp_path, tenant_storage_bytes=LIMIT * size + 1) as it:
        answers = statuses(await it.race(uploaded))
        assert answers == {(200, ""): LIMIT, (413, "storage_quota_exceeded"): AT_ONCE - LIMIT}
        assert sum(path.stat().st_size for path in objects(it.storage)) == LIMIT * size
        assert await no_reservation(it)


async def test_an_upload_that_breaks_off_or_is_malformed_gives_its_share_back(redis_url: str, tmp_path: Path) -> None:
    async with pair(redis_url, tmp_path, tenant_files=1) as it:
        for fields, status in (({"purpose": "none"}, 422), ({"colour": "red"}, 400)):
            assert (await sent(it.one, b"text", **fields)).status == status
        host, port = it.one.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"POST {FILES} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf'
        writer.write(f"{head}Content-Length: 100000\r\n\r\n{part}".encode())
        await writer.drain()
        await eventually(lambda: reserved(it))
        assert statuses([await uploaded(it.gateways[1], 0)]) == {(413, "file_quota_exceeded"): 1}
        writer.close()
        await eventually(lambda: no_reservation(it))
        assert (await uploaded(it.one, 1)).status == 200


async def test_a_stored_file_and_its_reservation_take_one_place(redis_url: str, tmp_path: Path) -> None:
    async with connected(redis_url) as redis:
        blobs = Blobs(redis, Storage.at(tmp_path.as_uri()), Quota(files=2, bytes=100))
        async with blobs.reserved("a", "file-1", size_bytes=60):
            await redis.zadd(Partitions(redis).of_name("a").key("files", "a"), {"file-1": 1})
            async with blobs.reserved("a", "file-2", size_bytes=60):
                with pytest.raises(TooLarge):
                    async with blobs.reserved("a", "file-3", size_bytes=0):
                        pass


async def test_the_share_of_a_process_that_died_returns(redis_url: str, tmp_path: Path) -> None:
    async with connected(redis_url) as redis:
        blobs = Blobs(redis, Storage.at(tmp_path.as_uri()), Quota(files=1, bytes=100))
        dead = blobs.reserved("a", "file-1", size_bytes=60)
        await dead.__aenter__()
        with pytest.raises(TooLarge):
            async with blobs.reserved("a", "file-2", size_bytes=1):
                pass
        for key in await keys(redis, "*files-reserved*"):
            assert 0 < await redis.pttl(key) <= 60_000
            await redis.delete(key)  # as if that time had passed
        async with blobs.reserved("a", "file-3", size_bytes=60):
            pass
        await dead.__aexit__(None, None, None)


async def test_no_more_bytes_of_responses_are_kept_than_the_quota_allows(redis_url: str, tmp_path: Path) -> None:
    async with pair(redis_url, tmp_path, tenant_response_bytes=30_000) as it:
        body = {"model": "m", "input": TEXT}

        async def ask(gateway: Gateway, number: int) -> Answer:
            return await gateway.post(RESPONSES, {**body, "background": number % 3 == 0})

        answers = await it.race(ask)
        assert set(statuses(answers)) == {(200, ""), (429, "response_quota_exceeded")}
        kept = [one.json["id"] for one in answers if one.status == 200 and one.json["store"]]
        assert [(await it.one.get(f"{RESPONSES}/{id_}")).status for id_ in kept] == [200] * len(kept)
        stored = await keys(it.one.redis, "*:response:*")
        assert len(stored) == len(kept) == len(await keys_that_hold(it.one.redis, b"raced raced")) - _jobs(answers)
        assert await sum_of(it, "response") <= 30_000
        assert await parts_of(it, "response") == await sum_of(it, "response")


def _jobs(answers: list[Answer]) -> int:
    """The background responses, whose jobs hold the input too."""
    return sum(one.status == 200 and one.json["background"] for one in answers)


async def sum_of(it: Pair, kind: str) -> int:
    """The bytes that the tenant's records count for in all."""
    return int(await it.one.redis.hget(f"memloop:{{q0}}:{kind}-sizes:local", "") or 0)  # pyright: ignore


async def parts_of(it: Pair, kind: str) -> int:
    """The bytes that each of them counts for, added up."""
    sizes: dict[str, str] = await it.one.redis.hgetall(f"memloop:{{q0}}:{kind}-sizes:local")  # pyright: ignore
    return sum(int(size) for name, size in sizes.items() if name)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_that_fails_gives_its_bytes_back(redis_url: str, tmp_path: Path, stream: bool) -> None:
    async with pair(redis_url, tmp_path, tenant_response_bytes=30_000) as it:
        body = {"model": "m", "input": f"DIE {TEXT}", "stream": stream}
        await it.race(lambda gateway, _: gateway.post(RESPONSES, body))
        assert await sum_of(it, "response") == 0
        assert (await it.one.post(RESPONSES, {"model": "m", "input": TEXT})).json["store"] is True


async def test_no_more_conversations_and_items_are_taken_than_the_quotas_allow(redis_url: str, tmp_path: Path) -> None:
    async with pair(redis_url, tmp_path, tenant_conversations=LIMIT, conversation_items=LIMIT) as it:
        answers = await it.race(lambda gateway, _: gateway.post(CONVERSATIONS, {}))
        assert statuses(answers) == {(200, ""): LIMIT, (429, "conversation_quota_exceeded"): AT_ONCE - LIMIT}
        assert len(await keys(it.one.redis, "*:conversation:*")) == LIMIT
        path = f"{CONVERSATIONS}/{next(one.json['id'] for one in answers if one.status == 200)}/items"
        item = {"items": [{"type": "message", "role": "user", "content": "Hi."}]}
        added = statuses(await it.race(lambda gateway, _: gateway.post(path, item)))
        assert added == {(200, ""): LIMIT, (400, "conversation_too_long"): AT_ONCE - LIMIT}
        assert len((await it.one.get(path)).json["data"]) == LIMIT


async def test_no_more_bytes_of_conversations_are_taken_than_the_quota_allows(redis_url: str, tmp_path: Path) -> None:
    async with pair(redis_url, tmp_path, tenant_conversation_bytes=20_000) as it:
        item = {"type": "message", "role": "user", "content": TEXT}
        answers = statuses(await it.race(lambda gateway, _: gateway.post(CONVERSATIONS, {"items": [item]})))
        assert set(answers) == {(200, ""), (429, "conversation_quota_exceeded")}
        assert await sum_of(it, "conversation") <= 20_000
        assert await parts_of(it, "conversation") == await sum_of(it, "conversation")
        [path, *_] = [key.rpartition(":")[2] for key in await keys(it.one.redis, "*:conversation:*")]
        more = {"metadata": {f"key{number}": "v" * 500 for number in range(16)}}
        updated = statuses(await it.race(lambda gateway, _: gateway.post(f"{CONVERSATIONS}/{path}", more)))
        assert set(updated) <= {(200, ""), (429, "conversation_quota_exceeded")}
        assert await sum_of(it, "conversation") <= 20_000


async def test_no_more_vector_stores_and_files_in_one_are_taken_than_the_quotas_allow(
    redis_url: str, tmp_path: Path
) -> None:
    async with pair(redis_url, tmp_path, tenant_vector_stores=LIMIT, vector_store_files=LIMIT) as it:
        answers = await it.race(lambda gateway, _: gateway.post(VECTOR_STORES, {}))
        assert statuses(answers) == {(200, ""): LIMIT, (413, "vector_store_quota_exceeded"): AT_ONCE - LIMIT}
        assert len((await it.one.get(VECTOR_STORES)).json["data"]) == LIMIT
        files = [one.json["id"] for one in await it.race(uploaded)]
        path = f"{VECTOR_STORES}/{next(one.json['id'] for one in answers if one.status == 200)}/files"
        added = statuses(await it.race(lambda gateway, number: gateway.post(path, {"file_id": files[number]})))
        assert added == {(200, ""): LIMIT, (413, "vector_store_full"): AT_ONCE - LIMIT}
        assert len((await it.one.get(path)).json["data"]) == LIMIT


async def test_no_more_webhooks_keys_and_policies_are_taken_than_a_tenant_may_have(
    redis_url: str, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {"webhook_secret": "whsec_" + "A" * 44, "webhook_allow_http": True}
    async with pair(redis_url, tmp_path, **changes, webhook_allow_networks="127.0.0.0/8") as it:
        hook = {"url": "http://127.0.0.1:9/", "events": ["memory.added"]}
        hooks = statuses(await it.race(lambda gateway, _: gateway.post("/v1/admin/memory-webhooks", hook)))
        assert hooks == {(201, ""): MOST_HOOKS, (409, "too_many_webhooks"): AT_ONCE - MOST_HOOKS}

        await it.one.redis.zadd(api_keys_of("local"), {f"key_{n}": 0 for n in range(KEYS_OF_A_TENANT - LIMIT)})
        key = {"name": "raced", "scopes": ["chat"]}
        made = statuses(await it.race(lambda gateway, _: gateway.post("/v1/admin/keys", key)))
        assert made == {(201, ""): LIMIT, (409, "too_many_keys"): AT_ONCE - LIMIT}

        known = {f"user:{number}": "{}" for number in range(MOST_OF_A_TENANT - LIMIT)}
        await it.one.redis.hset("memloop:policies:local", mapping=known)  # pyright: ignore

        async def put(gateway: Gateway, number: int) -> Answer:
            path = f"{gateway.url}/v1/admin/memory-policy?user_id=raced-{number}"
            async with gateway.http.put(path, json={"instructions": "Be kind."}) as answer:
                return Answer(answer.status, answer.headers, await answer.read())

        assert statuses(await it.race(put)) == {(200, ""): LIMIT, (409, "too_many_policies"): AT_ONCE - LIMIT}


async def test_no_more_requests_are_admitted_and_traces_kept_than_the_limits_allow(
    redis_url: str, tmp_path: Path
) -> None:
    async with pair(redis_url, tmp_path, requests_per_minute=LIMIT) as it:
        answers = statuses(await it.race(lambda gateway, _: gateway.chat()))
        assert {status: count for (status, _), count in answers.items()} == {200: LIMIT, 429: AT_ONCE - LIMIT}
    async with pair(redis_url, tmp_path / "again", tenant_traces=LIMIT) as it:
        await it.one.memory.traces.records.switch("local", on=True)
        read = {"model": "m", "question": "Where?", "document": {"text": "one two three. " * 20}}
        assert statuses(await it.race(lambda gateway, _: gateway.post("/v1/long-read", read))) == {(200, ""): AT_ONCE}
        assert (await it.one.memory.traces.records.settings("local")).kept == LIMIT
        assert len(await keys(it.one.redis, "*:trace:*")) == LIMIT
