"""The audit log: what stands in it, what never does, who may read it, and what a flood does to it."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.access.audit import DIFFERENT_IN_A_WINDOW, Auditor
from gateway.settings import GatewaySettings
from memloop.wire.keys import AuditEntry, AuditKind
from memloop_service.logs import JsonLines
from memloop_state.credentials import API_KEYS
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, OPERATED, OPERATOR_KEY
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked
from tests.gateway.redis_view import connected, keys_that_hold
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway, running_gateway

AUDIT = "/v1/admin/audit"


@pytest.fixture
def operated(settings: GatewaySettings) -> GatewaySettings:
    return GatewaySettings.model_validate({**settings.model_dump(), "api_keys": OPERATED})


async def _page(gateway: Gateway, query: str, *, key: str = OPERATOR_KEY) -> Any:
    answer = await gateway.get(f"{AUDIT}?{query}", headers={"X-API-Key": key})
    assert answer.status == 200, answer.raw
    return answer.json


async def _entries(gateway: Gateway, query: str, *, at_least: int = 1) -> list[Any]:
    found: list[Any] = []

    async def there() -> bool:
        found[:] = (await _page(gateway, query))["data"]
        return len(found) >= at_least

    await eventually(there)
    return found


async def _made(gateway: Gateway, **fields: object) -> Any:
    body = {"name": "called canary", "tenant": "a", **fields}
    return (await gateway.post("/v1/admin/keys", body, headers={"X-API-Key": OPERATOR_KEY})).json


async def test_every_change_of_a_key_is_kept_with_who_did_it(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        made = await _made(gateway)
        headers = {"X-API-Key": OPERATOR_KEY}
        rotated = await gateway.post(f"/v1/admin/keys/{made['id']}/rotate", {}, headers=headers)
        await gateway.http.delete(f"{gateway.url}/v1/admin/keys/{made['id']}", headers=headers)
        entries = (await _page(gateway, "tenant=a"))["data"]
    assert [entry["action"] for entry in entries] == ["key.revoked", "key.rotated", "key.created"]
    assert {(entry["target"], entry["actor_tenant"], entry["tenant"]) for entry in entries} == {
        (made["id"], "ops", "a")
    }
    assert entries[1]["request_id"] == rotated.headers["x-request-id"]


async def test_no_secret_and_no_name_stands_in_the_log(operated: GatewaySettings, redis_url: str) -> None:
    async with running_gateway(operated) as gateway:
        made = await _made(gateway)
        await gateway.get("/v1/memory/canary?user_id=canary", headers={"X-API-Key": "canary-secret"})
        await gateway.get(f"/v1/admin/keys?tenant={made['secret']}", headers={"X-API-Key": ALICE_KEY})
        await _entries(gateway, "kind=unauthenticated")
        await _entries(gateway, "kind=denied&tenant=a")
    async with connected(redis_url) as redis:
        holding = await keys_that_hold(redis, b"canary", made["secret"].encode())
    assert holding == [API_KEYS], "the name, in the key's own record"


async def test_a_caller_without_a_known_key_is_noted_for_the_operator_alone(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        await gateway.get("/v1/models", headers={"X-API-Key": "wrong"})
        (entry,) = await _entries(gateway, "kind=unauthenticated")
        made = await _made(gateway, scopes=["admin"])
        hidden = await gateway.get(f"{AUDIT}?kind=unauthenticated", headers={"X-API-Key": made["secret"]})
    noted = {name: entry[name] for name in ("method", "route", "status", "code", "address", "tenant", "actor_key")}
    assert noted == {
        "method": "GET",
        "route": "/v1/models",
        "status": 401,
        "code": "invalid_api_key",
        "address": "127.0.0.1",
        "tenant": "",
        "actor_key": "",
    }
    assert hidden.status == 403


async def test_a_missing_scope_is_noted_in_the_log_of_the_keys_tenant(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        await gateway.get("/v1/admin/keys", headers={"X-API-Key": ALICE_KEY})
        (entry,) = await _entries(gateway, "kind=denied&tenant=a")
        other = await _page(gateway, "kind=denied&tenant=b")
    assert (entry["status"], entry["code"], entry["route"]) == (403, "permission_denied", "/v1/admin/keys")
    assert other["data"] == []


async def test_reaching_for_another_tenants_read_is_noted_and_looks_like_there_is_none(
    operated: GatewaySettings,
) -> None:
    async with running_gateway(operated) as gateway:
        read = await gateway.post(READ, asked(background=True), headers={"X-API-Key": ALICE_KEY})
        other = await gateway.get(f"{READ}/{read.json['id']}", headers={"X-API-Key": BOB_KEY})
        missing = await gateway.get(f"{READ}/lr_0", headers={"X-API-Key": BOB_KEY})
        (entry,) = await _entries(gateway, "kind=denied&tenant=b")
    assert (other.status, other.error["code"]) == (missing.status, missing.error["code"]) == (404, "not_found")
    assert (entry["code"], entry["route"]) == ("other_tenant", f"{READ}/{{read_id}}")


async def test_the_log_is_read_page_by_page(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        made = [(await _made(gateway))["id"] for _ in range(5)]
        first = await _page(gateway, "tenant=a&limit=3")
        second = await _page(gateway, f"tenant=a&limit=3&cursor={first['next_cursor']}")
    assert [entry["target"] for page in (first, second) for entry in page["data"]] == made[::-1]
    assert second["next_cursor"] is None


def _denied(kind: AuditKind, tenant: str, **fields: Any) -> AuditEntry:
    return AuditEntry(at=datetime.now(UTC), kind=kind, action="denied", tenant=tenant, actor_tenant=tenant, **fields)


async def test_a_flood_of_denials_is_counted_not_written_out(redis_url: str) -> None:
    async with connected(redis_url) as redis:
        auditor = Auditor(redis)
        async with auditor.keeping():
            for number in range(5000):
                denied = _denied("unauthenticated", "", code="invalid_api_key", address=f"10.0.{number % 250}.1")
                auditor.denied(denied.model_copy(update={"request_id": f"req_{number}"}))
        page = await auditor.page("unauthenticated", "", cursor=None, limit=1000)
    assert len(page.data) <= 2 * (DIFFERENT_IN_A_WINDOW + 1)
    assert sum(entry.count for entry in page.data) == 5000
    assert sum(entry.count for entry in page.data if entry.address == "") == 150 * 20


async def test_a_new_window_writes_the_same_denial_again(redis_url: str) -> None:
    denial = _denied("denied", "a", code="permission_denied", request_id="req_1")
    async with connected(redis_url) as redis:
        auditor = Auditor(redis, window_s=0.05)

        async def kept(count: int) -> bool:
            page = await auditor.page("denied", "a", cursor=None, limit=10)
            return [entry.count for entry in page.data] == [1, 2, 1][-count:]

        async with auditor.keeping():
            for _ in range(3):
                auditor.denied(denial)
            await eventually(lambda: kept(2))
            auditor.denied(denial.model_copy(update={"request_id": "req_2", "at": datetime.now(UTC)}))
            await eventually(lambda: kept(3))


async def test_without_redis_every_denial_is_still_a_line(caplog: pytest.LogCaptureFixture) -> None:
    server = RedisServer.start()
    async with connected(server.url) as redis:
        auditor = Auditor(redis, window_s=0.05)
        server.stop()
        with caplog.at_level(logging.INFO, logger="memloop.audit"):
            async with auditor.keeping():
                auditor.denied(_denied("denied", "a", code="permission_denied", status=403, actor_key="key_1"))
    (record,) = [record for record in caplog.records if record.name == "memloop.audit"]
    line = json.loads(JsonLines("gateway").format(record))
    assert (line["logger"], line["message"], line["level"]) == ("memloop.audit", "denied", "warning")
    assert (line["tenant"], line["actor_key"], line["code"], line["status"]) == ("a", "key_1", "permission_denied", 403)


async def test_before_the_first_place_stands_nothing(operated: GatewaySettings) -> None:
    async with running_gateway(operated) as gateway:
        await _made(gateway)
        assert (await _page(gateway, "cursor=0-0"))["data"] == []
