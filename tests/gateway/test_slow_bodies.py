"""Bodies that are announced and do not come, or drip, take nothing from anybody else and are ended."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import orjson
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Gateway, question, running_gateway

MIB = 1024 * 1024
SLOW = 200
ACTIVE = 'gateway_active_requests{lane="interactive"}'


def head(path: str, announced: int, key: str = ALICE_KEY) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}")
    lines += ("Content-Type: application/json", f"Content-Length: {announced}", "", "")
    return "\r\n".join(lines).encode()


class Client(asyncio.Protocol):
    """A connection that keeps what came, even if a reset ends it: the gateway closes while bytes still arrive."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.raw = bytearray()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.raw += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    async def drip(self) -> None:
        """A byte now and then."""
        while not self.transport.is_closing():
            self.transport.write(b" ")
            await asyncio.sleep(0.05)

    async def answered(self) -> int:
        """The status, once the gateway has closed the connection."""
        async with asyncio.timeout(PATIENCE_S):
            await self.ended.wait()
        return int(self.raw.split(b" ")[1])


@asynccontextmanager
async def clients(gateway: Gateway, number: int) -> AsyncGenerator[list[Client]]:
    """So many connections to the gateway."""
    loop, port = asyncio.get_running_loop(), int(gateway.url.rpartition(":")[2])
    opened = await asyncio.gather(*(loop.create_connection(Client, "127.0.0.1", port) for _ in range(number)))
    try:
        yield [client for _, client in opened]
    finally:
        for transport, _ in opened:
            transport.close()


def with_limits(settings: GatewaySettings, **changes: object) -> GatewaySettings:
    patient = {"api_keys": TWO_TENANTS, "body_timeout_s": 300.0}
    return GatewaySettings.model_validate(settings.model_dump() | patient | changes)


async def chats(gateway: Gateway, key: str) -> int:
    return (await gateway.post(CHAT, question(), headers={"Authorization": f"Bearer {key}"})).status


async def test_announced_bodies_that_do_not_come_leave_room_for_others(settings: GatewaySettings) -> None:
    chart = with_limits(settings, max_body_bytes=64 * MIB, max_active_bytes=128 * MIB, max_json_bytes=64 * MIB)
    async with running_gateway(chart) as gateway, clients(gateway, 2) as opened:
        for client in opened:
            client.transport.write(head(CHAT, 64 * MIB))
        await gateway.until_metric(ACTIVE, 2)
        assert await gateway.metric("gateway_active_body_bytes") == 0
        assert [await chats(gateway, key) for key in (ALICE_KEY, BOB_KEY)] == [200, 200]


@pytest.mark.parametrize("path", [CHAT, "/v1/memory/add", "/v3/memories/add", "/v1/long-read", "/mcp"])
async def test_a_body_that_drips_is_ended(settings: GatewaySettings, path: str) -> None:
    impatient = with_limits(settings, body_timeout_s=0.5, body_bytes_per_s=1000)
    async with running_gateway(impatient) as gateway, clients(gateway, 1) as [client]:
        began = time.monotonic()
        client.transport.write(head(path, 10_000) + b'{"a": "')
        dripping = asyncio.create_task(client.drip())
        status = await client.answered()
        dripping.cancel()
        assert status == 408
        assert b'"code":"body_timeout"' in client.raw
        assert time.monotonic() - began > 0.4
        await gateway.until_metric(ACTIVE, 0)
        assert await gateway.metric("gateway_active_body_bytes") == 0


async def test_a_body_that_comes_at_a_fair_pace_may_take_longer_than_the_deadline(settings: GatewaySettings) -> None:
    impatient = with_limits(settings, body_timeout_s=0.5, body_bytes_per_s=100)  # a stall of seconds is no slow body
    body = orjson.dumps(question("x" * 4000))
    async with running_gateway(impatient) as gateway, clients(gateway, 1) as [client]:
        client.transport.write(head(CHAT, len(body)).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        for start in range(0, len(body), 400):
            client.transport.write(body[start : start + 400])
            await asyncio.sleep(0.1)
        assert await client.answered() == 200


async def test_hundreds_of_slow_bodies_of_one_tenant_leave_another_its_chats(settings: GatewaySettings) -> None:
    full = with_limits(settings, max_active_requests=SLOW, max_active_bytes=64 * MIB)
    async with running_gateway(full) as gateway, clients(gateway, SLOW) as opened:
        for client in opened:
            client.transport.write(head(CHAT, 10 * MIB) + b"[")
        share, refusals = SLOW * 3 // 4, 'gateway_refused_requests_total{limit="tenant"}'

        async def share_is_taken() -> bool:
            return (await gateway.metric(ACTIVE), await gateway.metric(refusals)) == (share, SLOW - share)

        await eventually(share_is_taken)
        assert await asyncio.gather(*(chats(gateway, BOB_KEY) for _ in range(20))) == [200] * 20
        refused = await gateway.post(CHAT, question(), headers={"Authorization": f"Bearer {ALICE_KEY}"})
        assert (refused.status, refused.error["code"], refused.headers["Retry-After"]) == (429, "tenant_full", "1")
        assert await gateway.metric(refusals) == SLOW - share + 1


async def test_bytes_of_one_tenant_leave_another_its_share(settings: GatewaySettings) -> None:
    small = with_limits(settings, max_body_bytes=MIB, max_active_bytes=4 * MIB)
    async with running_gateway(small) as gateway, clients(gateway, 4) as opened:
        for client in opened:
            client.transport.write(head(CHAT, MIB) + b"[" * (MIB - 1))
        await gateway.until_metric("gateway_active_body_bytes", 3 * (MIB - 1))
        assert await chats(gateway, BOB_KEY) == 200


async def test_bytes_are_counted_as_they_come_and_given_back(settings: GatewaySettings) -> None:
    async with running_gateway(with_limits(settings)) as gateway, clients(gateway, 1) as [client]:
        client.transport.write(head(CHAT, 10_000) + b"x" * 4_000)
        await gateway.until_metric("gateway_active_body_bytes", 4_000)
        client.transport.close()
        await gateway.until_metric("gateway_active_body_bytes", 0)
