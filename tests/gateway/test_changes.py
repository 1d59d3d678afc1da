"""The feed of changes and memory webhooks over HTTP, on the real store: every way in, rights, streams, deliveries."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import aiohttp
import orjson
import pytest

from gateway.changes.following import followed
from gateway.changes.hooks import Dispatcher
from memloop.wire.changes import StoreChanges
from memloop.wire.memory import Scope
from memloop_clients import StoreClient
from tests.fakes.job_engine import Body, Reply, add_memory, last_text
from tests.fakes.webhook_receiver import Receiver, webhook_receiver
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, configured
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway
from tests.gateway.test_webhooks import SECRET, WebhookSecrets
from tests.gateway.whole import whole

ALICE, BOB, ADMIN = {"X-API-Key": ALICE_KEY}, {"X-API-Key": BOB_KEY}, {"X-API-Key": "admin-key"}
WRITER = {"X-API-Key": "writer-key"}
KEYS = ",".join(
    [TWO_TENANTS, configured("a", "admin-key", "scopes=admin"), configured("a", "writer-key", "scopes=memory:write")]
)
CHANGES, HOOKS = "/v1/memory/changes", "/v1/admin/memory-webhooks"
HOOKED: dict[str, Any] = {
    "webhook_secret": SECRET,
    "webhook_allow_http": True,
    "webhook_allow_networks": "127.0.0.0/8",
    "webhook_retry_s": 0.02,
    "webhook_attempts": 3,
    "memory_webhook_poll_s": 0.02,
}


def keeper(body: Body) -> Reply:
    """Keeps the last words, or chats."""
    return add_memory(f"Kept: {last_text(body)[-60:]}") if "tools" in body else "Noted."


@asynccontextmanager
async def running(redis_url: str, folder: Path, **changes: Any) -> AsyncGenerator[Gateway]:
    """Gateway, worker and store, with memory webhooks to loopback."""
    settings: dict[str, Any] = {"api_keys": KEYS} | HOOKED | changes
    async with whole(redis_url, folder, keeper, **settings) as it:
        yield it.gateway


async def call(gateway: Gateway, method: str, path: str, body: object = None, key: Mapping[str, str] = ALICE) -> Any:
    raw = body if isinstance(body, bytes) else None if body is None else orjson.dumps(body)
    headers = {"Content-Type": "application/json", **key}
    async with gateway.http.request(method, gateway.url + path, data=raw, headers=headers) as answer:
        assert answer.status in (200, 201, 202), await answer.text()
        return orjson.loads(await answer.read())


def said(text: str, **fields: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **fields}


async def add(gateway: Gateway, text: str, **fields: object) -> str:
    """The id of a memory that is added verbatim."""
    event = await call(gateway, "POST", "/v1/memory/add", said(text, infer=False, **fields))
    return event["memories"][0]["item"]["id"]


async def feed(gateway: Gateway, query: str = "", key: Mapping[str, str] = ALICE) -> list[tuple[str, str]]:
    """Types and reasons of the tenant's changes."""
    page = await call(gateway, "GET", f"{CHANGES}{query}", key=key)
    return [(change["type"].removeprefix("memory."), change["reason"]) for change in page["changes"]]


async def mcp(gateway: Gateway, tool: str, arguments: Mapping[str, object]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18", **ALICE}
    answer = await gateway.post("/mcp", body, headers=headers)
    assert b'"isError":true' not in answer.raw.replace(b" ", b""), answer.raw


async def test_every_way_in_which_a_memory_changes_is_in_the_feed(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        item = await add(gateway, "Direct.")
        await call(gateway, "POST", "/v1/memory/add", said("Written.", sync=True))
        await call(gateway, "POST", "/v1/memory/batch", {"adds": [said("Batched.")]})
        await call(gateway, "PATCH", f"/v1/memory/{item}", {"memory": "Edited."})
        await call(gateway, "DELETE", f"/v1/memory/{item}")
        await call(gateway, "POST", f"/v1/memory/{item}/recover", {})
        await call(gateway, "POST", "/v3/memories/add/", said("mem0.", infer=False))
        await call(gateway, "PUT", f"/v1/memories/{item}/", {"text": "mem0 edited."})
        await mcp(gateway, "memory_add", {"text": "MCP.", "user_id": "alice", "infer": False})
        await mcp(gateway, "memory_update", {"id": item, "memory": "MCP edited."})
        await mcp(gateway, "memory_delete", {"id": item})
        await gateway.post(
            "/v1/chat/completions",
            {"model": "m", "messages": said("Chat.")["messages"], "memory": {"user_id": "alice", "sync": True}},
            headers=ALICE,
        )
        exported = (await gateway.post("/v1/memory/export", {"user_id": "alice"}, headers=ALICE)).raw.splitlines()[0]
        line = orjson.loads(exported)
        line["item"] |= {"id": str(uuid4()), "user_id": "bo"}
        await call(gateway, "POST", "/v1/memory/import", orjson.dumps(line))
        await eventually(lambda: _has(gateway, ("added", "imported")))
        await call(gateway, "DELETE", "/v1/memory?user_id=alice")
        found = await feed(gateway)
    expected = [
        ("added", "new fact"), ("added", "new fact"), ("added", "new fact"), ("updated", "edited"),
        ("deleted", "deleted"), ("added", "recovered"), ("added", "new fact"), ("updated", "edited"),
        ("added", "new fact"), ("updated", "edited"), ("deleted", "deleted"), ("added", "new fact"),
        ("added", "imported"), ("erased", "erased"),
    ]  # fmt: skip
    assert found == expected


async def _has(gateway: Gateway, change: tuple[str, str]) -> bool:
    return change in await feed(gateway)


async def test_a_user_sees_the_changes_of_its_memories_and_another_tenant_none(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        await add(gateway, "Alice's.")
        await add(gateway, "Bo's.", user_id="bo")
        mine = await call(gateway, "GET", f"{CHANGES}?user_id=bo")
        assert [change["user_id"] for change in mine["changes"]] == ["bo"]
        assert len(await feed(gateway)) == 2
        assert await feed(gateway, key=BOB) == []


async def test_a_key_that_may_not_read_memories_reads_no_changes(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        for query in ("", "?stream=true"):
            assert (await gateway.get(CHANGES + query, headers=WRITER)).status == 403
        for key in (ALICE, WRITER):
            assert (await gateway.get(HOOKS, headers=key)).status == 403


async def test_a_cursor_before_a_gap_is_410(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        answer = await gateway.get(f"{CHANGES}?after=1-0", headers=ALICE)
        assert (answer.status, answer.error["code"], answer.error["param"]) == (410, "cursor_too_old", "after")
        assert (await gateway.get(f"{CHANGES}?after=soon", headers=ALICE)).status == 422
        streamed = await gateway.get(f"{CHANGES}?stream=true&after=1-0", headers=ALICE)
        assert streamed.status == 410


async def test_a_cursor_behind_the_newest_change_is_410(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        await add(gateway, "Tea.")
        newest = (await call(gateway, "GET", f"{CHANGES}?after=latest"))["cursor"]
        assert await feed(gateway, f"?after={newest}") == []
        for query in ("", "stream=true&"):
            answer = await gateway.get(f"{CHANGES}?{query}after=999999999999999-0", headers=ALICE)
            assert (answer.status, answer.error["code"]) == (410, "cursor_too_old")


@asynccontextmanager
async def stream(gateway: Gateway, query: str = "", **headers: str) -> AsyncGenerator[aiohttp.StreamReader]:
    """The lines of a followed feed."""
    async with gateway.http.get(f"{gateway.url}{CHANGES}?stream=true{query}", headers=ALICE | headers) as answer:
        assert answer.status == 200, await answer.text()
        yield answer.content


async def event(lines: aiohttp.StreamReader) -> tuple[str, str, Any]:
    """Type, id and data of the next event."""
    fields: dict[str, str] = {}
    while line := (await lines.readline()).decode():
        if not line.strip() and fields:
            break
        name, _, value = line.strip().partition(": ")
        if name:
            fields[name] = value
    return fields["event"], fields["id"], orjson.loads(fields["data"])


async def test_a_follower_gets_old_and_new_changes_and_resumes_where_it_was(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        await add(gateway, "One.")
        async with stream(gateway) as lines:
            kind, first, data = await event(lines)
            assert (kind, data["type"], data["id"]) == ("memory.added", "memory.added", first)
            second = await add(gateway, "Two.")
            assert (await event(lines))[2]["memory_id"] == second
        third = await add(gateway, "Three.")
        async with stream(gateway, **{"Last-Event-ID": first}) as lines:
            assert [(await event(lines))[2]["memory_id"] for _ in range(2)] == [second, third]


async def test_a_follower_from_the_end_gets_only_what_comes(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        await add(gateway, "One.")
        async with stream(gateway, "&after=latest") as lines:
            two = await add(gateway, "Two.")
            assert (await event(lines))[2]["memory_id"] == two


async def test_one_tenants_followers_are_bounded(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, tenant_followers=1) as gateway, stream(gateway):
        answer = await gateway.get(f"{CHANGES}?stream=true", headers=ALICE)
        assert (answer.status, answer.error["code"]) == (429, "too_many_streams")
        assert (await gateway.get(CHANGES, headers=ALICE)).status == 200


async def test_a_stream_ends_after_its_time_so_that_rights_are_checked_again(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        store, scope = gateway.memory.store, Scope(tenant="a")
        first = await store.changes(StoreChanges(scope=scope))
        events = followed(store, gateway.app.state.changes.bell, scope, first, longest_s=0.05)
        assert [change async for change in events] == []


async def test_a_stream_that_always_has_more_ends_after_its_time_too(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        await add(gateway, "Tea.")
        store, scope = gateway.memory.store, Scope(tenant="a")
        first = (await store.changes(StoreChanges(scope=scope))).model_copy(update={"has_more": True})
        events = followed(store, gateway.app.state.changes.bell, scope, first, longest_s=0)
        assert len([change async for change in events]) == len(first.changes)


@asynccontextmanager
async def hooked(
    redis_url: str, folder: Path, body: Mapping[str, object] | None = None
) -> AsyncGenerator[tuple[Gateway, Receiver, str]]:
    """A tenant that subscribed to its changes, and the subscription's id."""
    secrets = WebhookSecrets.parse(SECRET)
    assert secrets is not None
    async with webhook_receiver(secrets.of("a")) as receiver, running(redis_url, folder) as gateway:
        hook = await call(gateway, "POST", HOOKS, {"url": receiver.url, **(body or {})}, ADMIN)
        yield gateway, receiver, hook["id"]


async def test_changes_are_delivered_signed_with_ids_and_no_text(redis_url: str, tmp_path: Path) -> None:
    async with hooked(redis_url, tmp_path) as (gateway, receiver, _):
        item = await add(gateway, "The safe opens with rhubarb.")
        await call(gateway, "DELETE", "/v1/memory?user_id=alice")
        await eventually(lambda: len(receiver.messages) == 2)
    messages = sorted(receiver.messages, key=lambda message: message["timestamp"])
    assert [message["type"] for message in messages] == ["memory.added", "memory.erased"]
    data = messages[0]["data"]
    assert (data["id"], data["object"], data["user_id"], data["reason"]) == (item, "memory", "alice", "new fact")
    assert "rhubarb" not in str(messages)
    assert "id" not in messages[1]["data"]


async def test_reading_and_following_changes_counts_no_request(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, requests_per_minute=1) as gateway:
        assert [await feed(gateway) for _ in range(3)] == [[], [], []]
        async with gateway.http.get(f"{gateway.url}{CHANGES}?stream=true", headers=dict(ALICE)) as stream:
            assert stream.status == 200
        await add(gateway, "The one request of this minute.")


async def test_a_subscription_takes_the_types_and_the_user_that_it_names(redis_url: str, tmp_path: Path) -> None:
    asked = {"events": ["memory.deleted"], "user_id": "alice"}
    async with hooked(redis_url, tmp_path, asked) as (gateway, receiver, _):
        for user in ("bo", "alice"):
            item = await add(gateway, f"{user}'s.", user_id=user)
            await call(gateway, "DELETE", f"/v1/memory/{item}")
        await eventually(lambda: len(receiver.messages) == 1)
    assert [(one["type"], one["data"]["user_id"]) for one in receiver.messages] == [("memory.deleted", "alice")]


async def test_a_change_that_is_dispatched_twice_is_queued_once(redis_url: str, tmp_path: Path) -> None:
    async with hooked(redis_url, tmp_path) as (gateway, receiver, hook):
        await add(gateway, "One.")
        await eventually(lambda: len(receiver.messages) == 1)
        (subscribed,) = await gateway.app.state.changes.hooks.of("a")
        await gateway.app.state.changes.hooks.served(subscribed, "0")
        await add(gateway, "Two.")
        await eventually(lambda: len(receiver.messages) == 2)
    assert len(set(receiver.ids)) == 2
    assert hook == subscribed.id


async def test_a_second_worker_leaves_the_dispatch_to_the_first(redis_url: str, tmp_path: Path) -> None:
    async with hooked(redis_url, tmp_path) as (gateway, receiver, _):
        await add(gateway, "One.")
        await eventually(lambda: len(receiver.messages) == 1)
        work = gateway.work
        never_asked = cast("StoreClient", object())
        await Dispatcher(work.state, never_asked, work.reading.webhooks.queue, work.metrics).round()


async def test_a_deleted_subscription_gets_nothing_more(redis_url: str, tmp_path: Path) -> None:
    async with hooked(redis_url, tmp_path) as (gateway, receiver, hook):
        assert [one["id"] for one in (await call(gateway, "GET", HOOKS, key=ADMIN))["data"]] == [hook]
        await call(gateway, "DELETE", f"{HOOKS}/{hook}", key=ADMIN)
        await add(gateway, "One.")
        second = await call(gateway, "POST", HOOKS, {"url": receiver.url}, ADMIN)
        two = await add(gateway, "Two.")
        await eventually(lambda: len(receiver.messages) == 1)
        actions = [entry["action"] for entry in (await call(gateway, "GET", "/v1/admin/audit", key=ADMIN))["data"]]
    assert receiver.messages[0]["data"]["id"] == two
    assert second["id"] != hook
    assert actions == ["memory_webhook.created", "memory_webhook.deleted", "memory_webhook.created"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"url": "http://169.254.169.254/"}, 422, id="not-public"),
        pytest.param({"url": "ftp://example.com"}, 422, id="no-web-address"),
        pytest.param({"url": "https://a\u0000b/"}, 422, id="unseen-characters"),
        pytest.param({"url": "https://ex ample/"}, 422, id="a-space"),
        pytest.param({"url": "https://example.com", "events": ["memory.read"]}, 422, id="unknown-type"),
        pytest.param({"url": "https://example.com", "events": []}, 422, id="no-type"),
        pytest.param({"url": "https://example.com", "tenant": "b"}, 400, id="unknown-field"),
    ],
)
async def test_a_subscription_that_cannot_be_is_refused(
    redis_url: str, tmp_path: Path, body: object, status: int
) -> None:
    async with running(redis_url, tmp_path) as gateway:
        answer = await gateway.post(HOOKS, body, headers=ADMIN)
    assert answer.status == status, answer.raw


async def test_deleting_what_is_no_subscription_leaves_no_word_of_it(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        url = f"{gateway.url}{HOOKS}/alice%40example.com-{'x' * 1000}"
        async with gateway.http.delete(url, headers=dict(ADMIN)) as answer:
            assert answer.status == 404
        assert (await call(gateway, "GET", "/v1/admin/audit", key=ADMIN))["data"] == []


async def test_a_tenant_has_a_bounded_number_of_subscriptions(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as gateway:
        for _ in range(20):
            await call(gateway, "POST", HOOKS, {"url": "https://example.com/in"}, ADMIN)
        answer = await gateway.post(HOOKS, {"url": "https://example.com/in"}, headers=ADMIN)
    assert (answer.status, answer.error["code"]) == (409, "too_many_webhooks")
