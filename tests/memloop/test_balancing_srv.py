"""Replicas are found by SRV records: ports, priorities and weights are theirs."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import orjson
import pytest
from yarl import URL

from memloop.wire.errors import Unreachable
from memloop_clients.balancing.lookup import endpoints_by
from memloop_clients.balancing.resolving import Endpoint, plain
from memloop_clients.http import Http
from tests.fakes.name_server import NameServer, name_server
from tests.fakes.ports import free_port
from tests.fakes.replicas import ADDRESSES, Replica, Replicas
from tests.gateway.rig import eventually
from tests.memloop.http1_rig import PATIENT, refused

SERVICE = "_http._tcp.engines.test"


def record(replica: Replica, *, priority: int = 0, weight: int = 1) -> str:
    target = f"at-{replica.port}.engines.test."
    return (
        f"{SERVICE}. 5 IN SRV {priority} {weight} {replica.port} {target}\n"
        f"{target} 5 IN A {replica.address}\n"
    )  # fmt: skip


@asynccontextmanager
async def set_up(count: int = 3) -> AsyncGenerator[tuple[NameServer, Sequence[Replica], Http]]:
    """Replicas on ports of their own, none of them in a record yet."""
    async with AsyncExitStack() as stack:
        names = await stack.enter_async_context(name_server())
        every = [Replica(address, free_port()) for address in ADDRESSES[:count]]
        for each in every:
            each.holding.set()
            await each.start()
            stack.push_async_callback(each.stop)

        async def endpoints(name: str) -> Sequence[Endpoint]:
            return await endpoints_by(names.resolver(), name)

        rules = replace(Replicas(every, []).rules(), endpoints=endpoints, on_unresolved=names.unresolved)
        url = f"http+srv://{SERVICE}/v1"
        http = Http(url, peer="engine", error_of=refused, headers={}, timeouts=PATIENT, balancing=rules)
        yield names, every, await stack.enter_async_context(http)


def in_service(http: Http) -> int:
    return sum(load.state != "gone" for load in http.loads())


async def ask(http: Http) -> str:
    return orjson.loads(await http.json("POST", "chat", body=1))["at"]


async def asked(http: Http, times: int) -> list[int]:
    """How many of so many requests went to each address."""
    answers = [await ask(http) for _ in range(times)]
    return [answers.count(address) for address in ADDRESSES]


async def test_requests_are_spread_over_the_ports_of_the_records() -> None:
    async with set_up() as (names, every, http):
        names.records = "".join(map(record, every))
        assert await asked(http, 30) == [10, 10, 10]


async def test_weights_are_shares_of_the_requests() -> None:
    async with set_up() as (names, every, http):
        names.records = record(every[0], weight=30) + record(every[1], weight=10) + record(every[2], weight=0)
        assert await asked(http, 40) == [30, 10, 0]


async def test_outstanding_requests_count_by_weight() -> None:
    async with set_up(2) as (names, every, http):
        names.records = record(every[0], weight=3) + record(every[1], weight=1)
        for each in every:
            each.holding.clear()
        held = [await http.send("POST", "chat", body=b"1") for _ in range(8)]
        assert [each.requests for each in every] == [6, 2]
        for each in every:
            each.holding.set()
        for response in held:
            await response.read()
            response.close()


async def test_the_next_priority_serves_only_while_the_lowest_has_no_replica() -> None:
    async with set_up(2) as (names, every, http):
        names.records = record(every[0], priority=1) + record(every[1], priority=2)
        assert await asked(http, 5) == [5, 0, 0]
        every[0].takes_work = False
        await eventually(lambda: next(each.state for each in http.loads()) == "unready")
        assert await asked(http, 5) == [0, 5, 0]
        every[0].takes_work = True
        await eventually(lambda: next(each.state for each in http.loads()) == "ready")
        assert await asked(http, 5) == [5, 0, 0]


async def test_a_replica_that_joins_gets_requests_and_one_that_is_retired_gets_none() -> None:
    async with set_up(2) as (names, every, http):
        names.records = record(every[0])
        assert await asked(http, 4) == [4, 0, 0]
        names.records = record(every[0]) + record(every[1])
        await eventually(lambda: in_service(http) == 2)
        assert await asked(http, 4) == [2, 2, 0]
        names.records = record(every[1])
        await eventually(lambda: in_service(http) == 1)
        assert await asked(http, 4) == [0, 4, 0]


async def test_addresses_that_do_not_come_along_are_looked_up() -> None:
    async with set_up(2) as (names, every, http):
        names.records, names.addresses_come_along = "".join(map(record, every)), False
        assert await asked(http, 4) == [2, 2, 0]


@pytest.mark.parametrize("garbage", [b"", b"\x81\x80\x00\x01", b"\xff" * 40], ids=["empty", "cut", "noise"])
async def test_a_malformed_answer_keeps_the_last_one(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with set_up(2) as (names, every, http):
        names.records = "".join(map(record, every))
        assert await asked(http, 4) == [2, 2, 0]
        names.garbage = garbage
        before = names.questions
        await eventually(lambda: names.questions > before)
        assert await asked(http, 4) == [2, 2, 0]
        await eventually(lambda: names.lookups_failed > 0)
        names.garbage, names.refuses = None, True
        with caplog.at_level(logging.WARNING):
            await eventually(lambda: "cannot be resolved" in caplog.text)
        assert await asked(http, 4) == [2, 2, 0]


async def test_a_service_without_records_cannot_be_reached_until_it_has_some() -> None:
    async with set_up(1) as (names, every, http):
        with pytest.raises(Unreachable):
            await ask(http)
        names.records = record(every[0])
        await eventually(lambda: bool(http.loads()))
        assert await asked(http, 2) == [2, 0, 0]


async def test_a_record_for_no_host_is_no_endpoint() -> None:
    async with name_server() as names:
        names.records = f"{SERVICE}. 5 IN SRV 0 0 80 ."
        with pytest.raises(OSError, match="no record has an address"):
            await endpoints_by(names.resolver(), SERVICE)


async def test_endpoints_come_by_priority() -> None:
    async with name_server() as names:
        first, second = Replica("127.0.0.2", 8001), Replica("127.0.0.1", 8000)
        names.records = record(second, priority=5) + record(first, priority=1, weight=7)
        found = await endpoints_by(names.resolver(), SERVICE)
        assert found == [Endpoint("127.0.0.2", 8001, 1, 7), Endpoint("127.0.0.1", 8000, 5, 1)]


def test_the_hosts_name_is_the_services() -> None:
    assert plain(URL(f"https+srv://{SERVICE}/v1")) == URL("https://engines.test/v1")
