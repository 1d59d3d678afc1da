"""Keys that are made at run time: their whole life, in one process and in two, with Redis and without."""

import time
import timeit
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from redis.asyncio import Redis

from gateway.access.access import load_static_keys
from gateway.access.key_records import KeyRecord, KeyRecords, digest_of, new_key_id, new_secret
from gateway.access.keys import KeyRing
from gateway.settings import GatewaySettings
from memloop.wire.errors import Conflict, Unavailable
from memloop.wire.keys import AuditEntry
from memloop_state.credentials import API_KEYS, API_KEYS_LOG
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY
from tests.gateway.redis_view import command, connected, keys_that_hold
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

KEYS = "/v1/admin/keys"


@dataclass(frozen=True)
class Admin:
    """A gateway, and the operator who manages its keys."""

    gateway: Gateway

    async def call(self, method: str, path: str, body: object = None, *, key: str = OPERATOR_KEY) -> Answer:
        headers = {"Authorization": f"Bearer {key}"}
        async with self.gateway.http.request(method, self.gateway.url + path, json=body, headers=headers) as response:
            return Answer(response.status, response.headers, await response.read())

    async def made(self, **fields: object) -> Any:
        answer = await self.call("POST", KEYS, {"name": "a key", "tenant": "a", **fields})
        assert answer.status == 201, answer.raw
        return answer.json

    async def status_with(self, secret: str) -> int:
        return (await self.call("GET", "/v1/models", key=secret)).status


@pytest.fixture
def operated(settings: GatewaySettings) -> GatewaySettings:
    return GatewaySettings.model_validate({**settings.model_dump(), "api_keys": OPERATED})


@pytest.fixture
async def admin(operated: GatewaySettings) -> AsyncGenerator[Admin]:
    async with running_gateway(operated) as gateway:
        yield Admin(gateway)


@asynccontextmanager
async def two_processes(settings: GatewaySettings) -> AsyncGenerator[tuple[Admin, Admin]]:
    async with AsyncExitStack() as stack:
        first, second = [Admin(await stack.enter_async_context(running_gateway(settings))) for _ in range(2)]
        yield first, second


def _record(secret: str, **fields: Any) -> KeyRecord:
    values = {"id": new_key_id(), "tenant": "a", "name": "n", "prefix": secret[:10], "scopes": ("chat",)}
    return KeyRecord.model_validate({**values, "digest": digest_of(secret), "created_at": 1, **fields})


async def test_a_made_key_works_at_once_and_in_its_own_tenant(admin: Admin) -> None:
    made = await admin.made(scopes=["chat"])
    answered = await admin.call("POST", CHAT, question(), key=made["secret"])
    refused = await admin.call("GET", "/v1/memory?user_id=alice", key=made["secret"])
    assert made["tenant"] == "a"
    assert (answered.status, refused.status) == (200, 403)


async def test_the_secret_is_shown_once_and_kept_nowhere(admin: Admin, redis_url: str) -> None:
    made = await admin.made(name="for the app")
    (listed,) = (await admin.call("GET", f"{KEYS}?tenant=a")).json["data"]
    assert made["secret"].startswith(made["prefix"])
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    async with connected(redis_url) as redis:
        assert await keys_that_hold(redis, made["secret"].encode()) == []
        assert await keys_that_hold(redis, digest_of(made["secret"]).encode()) == [API_KEYS]


async def test_a_key_without_named_scopes_may_not_manage_keys(admin: Admin) -> None:
    assert (await admin.made())["scopes"] == ["chat", "long-read", "memory:read", "memory:write"]


async def test_another_process_learns_of_created_and_revoked_keys(operated: GatewaySettings) -> None:
    async with two_processes(operated) as (first, second):
        made = await first.made()

        async def works_there() -> bool:
            return await second.status_with(made["secret"]) == 200

        await eventually(works_there)
        assert (await first.call("DELETE", f"{KEYS}/{made['id']}")).json["deleted"] is True
        assert await first.status_with(made["secret"]) == 401

        async def refused_there() -> bool:
            return not await works_there()

        await eventually(refused_there)
        assert (await second.call("DELETE", f"{KEYS}/{made['id']}")).status == 404


async def test_a_key_outlives_the_process_that_made_it(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        made = await Admin(gateway).made()
    async with running_gateway(operated) as gateway:
        assert await Admin(gateway).status_with(made["secret"]) == 200


async def test_rotation_ends_the_old_secret_at_once(admin: Admin) -> None:
    made = await admin.made()
    rotated = (await admin.call("POST", f"{KEYS}/{made['id']}/rotate", {})).json
    assert (rotated["id"], rotated["overlap_until"]) == (made["id"], None)
    assert await admin.status_with(made["secret"]) == 401
    assert await admin.status_with(rotated["secret"]) == 200


async def test_rotation_with_an_overlap_lets_both_secrets_work_until_its_end(admin: Admin) -> None:
    made = await admin.made()
    rotated = (await admin.call("POST", f"{KEYS}/{made['id']}/rotate", {"overlap_s": 5})).json
    both = [await admin.status_with(key["secret"]) for key in (made, rotated)]
    assert (both, 0 <= time.time() + 5 - rotated["overlap_until"] < 5) == ([200, 200], True)

    async def over() -> bool:
        return await admin.status_with(made["secret"]) == 401

    await eventually(over)
    assert await admin.status_with(rotated["secret"]) == 200
    assert (await admin.call("GET", f"{KEYS}?tenant=a")).json["data"][0]["overlap_until"] is None


async def test_an_expired_key_is_refused_and_cannot_be_rotated(admin: Admin) -> None:
    made = await admin.made(expires_at=int(time.time()) + 3)

    async def expired() -> bool:
        return await admin.status_with(made["secret"]) == 401

    await eventually(expired)
    refused = await admin.call("GET", "/v1/models", key=made["secret"])
    assert refused.error["code"] == "api_key_expired"
    assert (await admin.call("POST", f"{KEYS}/{made['id']}/rotate", {})).status == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "x", "expires_at": 1},
        {"name": "x", "tenant": "a/b"},
    ],
    ids=str,
)
async def test_a_key_that_makes_no_sense_is_not_made(body: object, admin: Admin) -> None:
    refused = await admin.call("POST", KEYS, body)
    assert refused.status == 422
    assert refused.error["param"] is not None


async def test_a_key_with_an_unknown_field_is_not_made(admin: Admin) -> None:
    refused = await admin.call("POST", KEYS, {"name": "x", "secret": "mine"})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (400, "unknown_parameter", "secret")


async def test_keys_are_listed_newest_first_page_by_page(admin: Admin) -> None:
    made = [(await admin.made())["id"] for _ in range(5)]
    first = (await admin.call("GET", f"{KEYS}?tenant=a&limit=3")).json
    await admin.call("DELETE", f"{KEYS}/{first['next_cursor']}")
    second = (await admin.call("GET", f"{KEYS}?tenant=a&limit=3&cursor={first['next_cursor']}")).json
    assert [key["id"] for page in (first, second) for key in page["data"]] == sorted(made, reverse=True)
    assert second["next_cursor"] is None


async def test_a_tenants_admin_manages_its_own_keys_only(admin: Admin) -> None:
    manager = (await admin.made(scopes=["admin", "chat"]))["secret"]
    own = await admin.call("POST", KEYS, {"name": "own", "scopes": ["chat"]}, key=manager)
    foreign = await admin.call("POST", KEYS, {"name": "foreign", "tenant": "b"}, key=manager)
    listed = await admin.call("GET", KEYS, key=manager)
    assert (own.status, own.json["tenant"]) == (201, "a")
    assert (foreign.status, foreign.error["code"]) == (403, "permission_denied")
    assert {key["tenant"] for key in listed.json["data"]} == {"a"}


async def test_an_idempotency_key_would_keep_the_secret_and_is_refused(admin: Admin) -> None:
    headers = {"Authorization": f"Bearer {OPERATOR_KEY}", "Idempotency-Key": "once"}
    refused = await admin.gateway.post(KEYS, {"name": "x"}, headers=headers)
    assert (refused.status, refused.error["param"]) == (400, "idempotency-key")


async def test_a_key_that_was_changed_meanwhile_is_not_changed_again(redis_url: str) -> None:
    entry = AuditEntry.model_validate({"at": "2026-01-01T00:00:00Z", "kind": "admin", "action": "key.rotated"})
    async with connected(redis_url) as redis:
        records, old = KeyRecords(redis), _record("ml_old")
        await records.change(None, old, entry)
        await records.change(None, old, entry)  # the client's own repetition, when the reply was lost
        assert await redis.xlen(API_KEYS_LOG) == 1
        await records.change(old, old.model_copy(update={"digest": digest_of("ml_new")}), entry)
        with pytest.raises(Conflict):
            await records.change(old, old.model_copy(update={"digest": digest_of("ml_newer")}), entry)
        assert (await records.get(old.id)).digest == digest_of("ml_new")


async def test_neither_made_nor_unknown_keys_cost_a_call_to_redis(admin: Admin, redis_url: str) -> None:
    made = await admin.made()
    async with connected(redis_url) as redis:
        await command(redis, "CONFIG", "RESETSTAT")
        statuses = {await admin.status_with(key) for key in [made["secret"], "ml_unknown"] * 40}
        calls = {name: stat["calls"] for name, stat in (await command(redis, "INFO", "commandstats")).items()}
    assert statuses == {200, 401}
    assert [name for name, count in calls.items() if count >= 40] == [], "what runs by the second is called less often"
    assert calls.get("cmdstat_xadd", 0) <= 1, "the first of forty denials, for the audit log"


async def test_the_last_use_of_a_key_is_written_down(operated: GatewaySettings) -> None:
    began = int(time.time())
    async with running_gateway(operated) as gateway:
        admin = Admin(gateway)
        made = await admin.made()
        await admin.status_with(made["secret"])
    async with running_gateway(operated) as gateway:
        (listed,) = (await Admin(gateway).call("GET", f"{KEYS}?tenant=a")).json["data"]
    assert began <= listed["last_used_at"] <= time.time()


async def test_without_redis_known_keys_work_on_and_unknown_ones_are_not_judged(operated: GatewaySettings) -> None:
    server = RedisServer.start(appendonly=True)
    there = operated.model_copy(update={"redis_url": type(operated.redis_url)(server.url), "redis_timeout_s": 30.0})
    async with running_gateway(there) as gateway:
        admin = Admin(gateway)
        made = await admin.made()
        server.kill()

        async def answers(status: int) -> bool:
            return await admin.status_with("ml_unknown") == status

        await eventually(lambda: answers(503))
        refused = await admin.call("GET", "/v1/models", key="ml_unknown")
        assert (refused.error["code"], refused.headers["Retry-After"]) == ("keys_unavailable", "2")
        assert [await admin.status_with(key) for key in (made["secret"], ALICE_KEY)] == [200, 200]
        server = RedisServer.start(port=server.port, folder=server.folder, appendonly=True)
        await eventually(lambda: answers(401))
        assert await admin.status_with(made["secret"]) == 200
    server.stop()


def test_a_process_without_updates_for_long_rejects_created_keys() -> None:
    now = 0.0
    book = KeyRing({}, KeyRecords(Redis()), wait_s=1.0, stale_s=300.0, clock=lambda: now)
    record = _record("ml_secret")
    digest = bytes.fromhex(record.digest)
    with pytest.raises(Unavailable):
        book.find(digest)
    book.reset([record])
    now = 299.0
    assert book.find(digest) is not None
    now = 301.0
    with pytest.raises(Unavailable):
        book.find(digest)


def test_a_key_is_found_among_ten_thousand_as_fast_as_among_ten() -> None:
    among_ten, among_all = (_seconds_to_find_one_of(count) for count in (10, 10_000))
    print(f"{among_ten * 1e6:.1f} µs among 10, {among_all * 1e6:.1f} µs among 10,000")
    assert among_all < 5 * among_ten


def _seconds_to_find_one_of(count: int) -> float:
    static = load_static_keys(GatewaySettings.model_validate({"api_keys": OPERATED}))
    ring = KeyRing(static, KeyRecords(Redis()), wait_s=1.0, stale_s=300.0)
    secrets = [new_secret() for _ in range(count)]
    ring.reset([_record(secret) for secret in secrets])
    headers = {"authorization": f"Bearer {secrets[7]}"}
    return min(timeit.repeat(lambda: ring.authenticate(headers), number=200, repeat=9)) / 200


async def _manager(admin: Admin, *scopes: str, **fields: object) -> str:
    """The secret of a key of tenant a that manages its keys."""
    return (await admin.made(name="manager", scopes=["admin", *scopes], **fields))["secret"]


@pytest.mark.parametrize(
    "scopes",
    [["memory:read"], ["admin", "memory:write"], ["chat", "long-read"], None],
    ids=["one", "two", "some", "all"],
)
async def test_an_admins_key_makes_no_key_with_scopes_that_it_lacks(scopes: list[str] | None, admin: Admin) -> None:
    manager = await _manager(admin, "chat")
    asked = {"name": "wider"} | ({} if scopes is None else {"scopes": scopes})
    refused = await admin.call("POST", KEYS, asked, key=manager)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (403, "permission_denied", "scopes")
    assert [key["name"] for key in (await admin.call("GET", KEYS, key=manager)).json["data"]] == ["manager"]


async def test_an_admins_key_makes_keys_within_its_own_scopes(admin: Admin) -> None:
    manager = await _manager(admin, "chat", "memory:read")
    made = await admin.call("POST", KEYS, {"name": "app", "scopes": ["chat", "memory:read"]}, key=manager)
    assert (made.status, made.json["scopes"]) == (201, ["chat", "memory:read"])


async def test_rotating_a_wider_key_would_give_its_secret_away_and_is_refused(admin: Admin) -> None:
    manager = await _manager(admin)
    wider = await admin.made(scopes=["memory:read"])
    refused = await admin.call("POST", f"{KEYS}/{wider['id']}/rotate", {"overlap_s": 60}, key=manager)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (403, "permission_denied", "scopes")
    assert await admin.status_with(wider["secret"]) == 200
    assert (await admin.call("DELETE", f"{KEYS}/{wider['id']}", key=manager)).status == 200


@pytest.mark.parametrize("later", [{}, {"expires_at": 4_000_000_000}], ids=["no end", "a later end"])
async def test_a_key_makes_no_key_that_outlives_it(later: dict[str, int], admin: Admin) -> None:
    ends_at = int(time.time()) + 3600
    manager = await _manager(admin, "chat", expires_at=ends_at)
    asked = {"name": "longer", "scopes": ["chat"]}
    refused = await admin.call("POST", KEYS, asked | later, key=manager)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (403, "permission_denied", "expires_at")
    assert str(ends_at) in refused.error["message"]
    assert (await admin.call("POST", KEYS, asked | {"expires_at": ends_at}, key=manager)).status == 201
    longer = await admin.made(scopes=["chat"])
    rotated = await admin.call("POST", f"{KEYS}/{longer['id']}/rotate", {}, key=manager)
    assert (rotated.status, rotated.error["param"]) == (403, "expires_at")


async def test_an_old_secret_in_its_overlap_cannot_prolong_itself(admin: Admin) -> None:
    made = await admin.made(scopes=["admin", "chat"])
    new = (await admin.call("POST", f"{KEYS}/{made['id']}/rotate", {"overlap_s": 3600})).json["secret"]
    for path, body in ((f"{KEYS}/{made['id']}/rotate", {}), (KEYS, {"name": "x", "scopes": ["chat"]})):
        refused = await admin.call("POST", path, body, key=made["secret"])
        assert (refused.status, refused.error["param"]) == (403, "expires_at")
    assert (await admin.call("POST", f"{KEYS}/{made['id']}/rotate", {}, key=new)).status == 200


async def test_the_operators_key_gives_scopes_that_it_lacks_itself(admin: Admin) -> None:
    assert (await admin.made(scopes=["memory:read", "memory:write"]))["scopes"] == ["memory:read", "memory:write"]
