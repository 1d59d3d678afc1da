"""Requests are spread over the replicas behind a name or a list, and each replica's state is followed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import pytest
from yarl import URL

from memloop.wire.errors import ConnectRefused, Unavailable
from memloop.wire.memory import Scope
from memloop_clients import Balancing, CircuitOpen, EngineClient, StoreClient
from memloop_clients.balancing.resolving import has_a_name, replicas_at, system_addresses
from memloop_clients.http import Http
from memloop_clients.transport import RawResponse
from tests.fakes.replicas import ADDRESSES, Replica, Replicas, replicas
from tests.gateway.rig import eventually
from tests.memloop.http1_rig import PATIENT, refused


@asynccontextmanager
async def client(url: str, rules: Balancing) -> AsyncGenerator[Http]:
    async with Http(url, peer="engine", error_of=refused, headers={}, timeouts=PATIENT, balancing=rules) as http:
        yield http


@asynccontextmanager
async def set_up(count: int = 3, *, failures: int = 5, open_s: float = 600.0) -> AsyncGenerator[tuple[Replicas, Http]]:
    async with (
        replicas(count) as them,
        client(them.url, them.rules(failures=failures, open_s=open_s)) as http,
    ):
        yield them, http


async def ask(http: Http, *, affinity: str | None = None) -> str:
    """The address of the replica that answered."""
    return orjson.loads(await http.json("POST", "chat", body=1, affinity=affinity))["at"]


def states(http: Http) -> list[str]:
    return [load.state for load in http.loads()]


def serves(http: Http, *addresses: str) -> Callable[[], Awaitable[bool]]:
    """Whether requests now reach these replicas and no other."""

    async def holds() -> bool:
        return {await ask(http) for _ in range(6)} == set(addresses)

    return holds


async def opened(http: Http, *, affinity: str | None = None) -> RawResponse:
    return await http.send("POST", "chat", body=b"1", affinity=affinity)


async def ended(response: RawResponse) -> bytes:
    try:
        return await response.read()
    finally:
        response.close()


async def test_requests_are_spread_evenly() -> None:
    async with set_up() as (them, http):
        for _ in range(30):
            await ask(http)
        assert them.requests == [10, 10, 10]


async def test_a_request_goes_where_the_fewest_are_outstanding() -> None:
    async with set_up(2) as (them, http):
        for replica in them.every:
            replica.holding.clear()
        slow = await opened(http)
        (busy,) = [replica for replica in them.every if replica.requests]
        (other,) = [replica for replica in them.every if replica is not busy]
        other.holding.set()
        assert [await ask(http) for _ in range(5)] == [other.address] * 5
        busy.holding.set()
        await ended(slow)
        assert {await ask(http) for _ in range(2)} == {busy.address, other.address}


async def test_a_replica_that_is_added_gets_requests() -> None:
    async with set_up() as (them, http):
        them.addresses[:] = ADDRESSES[:1]
        assert {await ask(http) for _ in range(4)} == {ADDRESSES[0]}
        them.addresses[:] = ADDRESSES[:2]
        await eventually(serves(http, *ADDRESSES[:2]))


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "drains"])
async def test_a_replica_that_goes_gets_nothing_new_and_its_stream_goes_on(*, leaves: bool) -> None:
    async with set_up(2) as (them, http):
        going = them.every[0]
        going.holding.clear()
        first, second = await opened(http), await opened(http)
        if leaves:
            them.addresses[:] = ADDRESSES[1:2]
        else:
            going.takes_work = False
        await eventually(lambda: states(http) == ["gone" if leaves else "unready", "ready"])
        before = going.requests
        assert {await ask(http) for _ in range(6)} == {ADDRESSES[1]}
        assert (going.requests, going.running) == (before, 1)
        going.holding.set()
        assert {await ended(first), await ended(second)} == {b'{"at":"127.0.0.1"}', b'{"at":"127.0.0.2"}'}
        them.addresses[:], going.takes_work = ADDRESSES[:2], True
        await eventually(serves(http, *ADDRESSES[:2]))


async def test_when_no_replica_is_ready_all_are_asked() -> None:
    async with set_up(2) as (them, http):
        await ask(http)
        for replica in them.every:
            replica.takes_work = False
        await eventually(lambda: states(http) == ["unready"] * 2)
        assert {await ask(http) for _ in range(4)} == set(ADDRESSES[:2])


async def test_a_replica_that_refuses_connections_costs_no_request() -> None:
    async with set_up() as (them, http):
        await ask(http)
        await them.every[1].stop()
        assert {await ask(http) for _ in range(9)} == {ADDRESSES[0], ADDRESSES[2]}


async def test_a_request_that_was_sent_is_not_sent_again() -> None:
    async with set_up() as (them, http):
        for replica in them.every:
            replica.drops = True
        with pytest.raises(Unavailable, match="was lost"):
            await ask(http)
        assert sum(them.requests) == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_replica_that_keeps_failing_is_ejected_and_comes_back(method: str) -> None:
    async with set_up(2, failures=2, open_s=0.1) as (them, http):
        them.every[0].drops = True

        async def ejected() -> bool:
            await asyncio.gather(*(http.json(method, "chat") for _ in range(2)), return_exceptions=True)
            return "ejected" in states(http)

        await eventually(ejected)
        them.every[0].drops = False
        await eventually(serves(http, *ADDRESSES[:2]))


async def test_when_every_replica_is_ejected_requests_are_refused_at_once() -> None:
    async with set_up(2, failures=1) as (them, http):
        for replica in them.every:
            replica.drops = True
        await asyncio.gather(ask(http), ask(http), return_exceptions=True)
        with pytest.raises(CircuitOpen, match="No replica of the engine can be reached") as refusal:
            await ask(http)
        assert refusal.value.code == "engine_circuit_open"
        assert them.requests == [1, 1]


@asynccontextmanager
async def one_server(*, failures: int, open_s: float) -> AsyncGenerator[tuple[Replica, Http]]:
    rules = Balancing(failures=failures, open_s=open_s, suspends_one=True)
    async with replicas(1) as them, client(f"{them.every[0].url}/v1", rules) as http:
        yield them.every[0], http


async def test_one_server_that_keeps_failing_is_left_alone() -> None:
    async with one_server(failures=2, open_s=600.0) as (server, http):
        server.drops = True
        for expected in (Unavailable, Unavailable, CircuitOpen, CircuitOpen):
            with pytest.raises(expected) as refusal:
                await ask(http)
        assert (refusal.value.code, server.requests, http.is_suspended()) == ("engine_circuit_open", 2, True)


async def test_an_answer_in_between_starts_the_count_again() -> None:
    async with one_server(failures=2, open_s=600.0) as (server, http):
        for drops in (True, False, True, False):
            server.drops = drops
            await asyncio.gather(ask(http), return_exceptions=True)
        assert (server.requests, http.is_suspended()) == (4, False)


async def test_a_probe_decides_about_one_server_while_other_requests_are_refused() -> None:
    async with one_server(failures=1, open_s=0.0) as (server, http):
        server.drops = True
        for _ in range(2):
            with pytest.raises(Unavailable, match="was lost"):
                await ask(http)
        assert (server.bodies[0], set(server.bodies[1:])) == (b"1", {b""})  # the probe's
        server.drops = False
        replies = await asyncio.gather(*(ask(http) for _ in range(3)), return_exceptions=True)
        assert [type(reply) for reply in replies] == [str, CircuitOpen, CircuitOpen]
        assert await ask(http) == server.address


async def test_requests_of_one_key_stay_on_one_replica_and_keys_are_spread() -> None:
    async with set_up() as (_, http):
        homes = {key: {await ask(http, affinity=key) for _ in range(2)} for key in map(str, range(60))}
    assert {len(home) for home in homes.values()} == {1}
    assert set[str]().union(*homes.values()) == set(ADDRESSES)


async def test_two_clients_choose_the_same_replica_for_a_key() -> None:
    async with set_up() as (them, http), client(them.url, them.rules()) as other:
        keys = [str(number) for number in range(10)]
        assert [await ask(http, affinity=key) for key in keys] == [await ask(other, affinity=key) for key in keys]


async def test_a_key_whose_replica_is_full_goes_to_another_and_stays_there() -> None:
    async with set_up(2) as (them, http):
        home = await ask(http, affinity="key")
        (full,) = [replica for replica in them.every if replica.address == home]
        full.holding.clear()
        held = [await opened(http, affinity="key") for _ in range(4)]
        (other,) = set(ADDRESSES[:2]) - {home}
        assert await ask(http, affinity="key") == other
        full.holding.set()
        for response in held:
            await ended(response)
        assert await ask(http, affinity="key") == other


async def test_a_key_leaves_a_replica_that_drains() -> None:
    async with set_up(2) as (them, http):
        home = await ask(http, affinity="key")
        (draining,) = [replica for replica in them.every if replica.address == home]
        draining.takes_work = False
        await eventually(lambda: "unready" in states(http))
        assert await ask(http, affinity="key") != home


async def test_a_name_without_addresses_is_an_engine_that_cannot_be_reached_until_it_has_some() -> None:
    async with set_up(2) as (them, http):
        them.addresses.clear()
        with pytest.raises(ConnectRefused):
            await ask(http)
        them.addresses[:] = ADDRESSES[:2]

        async def answered() -> bool:
            try:
                return await ask(http) in ADDRESSES
            except Unavailable:
                return False

        await eventually(answered)


async def test_replicas_stay_while_their_name_cannot_be_resolved() -> None:
    async with set_up(2) as (them, http):
        await ask(http)
        them.addresses.clear()
        await eventually(lambda: them.unresolved >= 2)
        assert {await ask(http) for _ in range(4)} == set(ADDRESSES[:2])


async def test_a_list_of_urls_is_balanced_too() -> None:
    async with replicas() as them:
        urls = [f"{replica.url}/v1" for replica in them.every]
        async with client(urls[0], Balancing(also=tuple(urls[1:]))) as http:
            for _ in range(9):
                await ask(http)
        assert them.requests == [3, 3, 3]


async def test_the_first_answers_wait_for_nobody_who_is_cancelled() -> None:
    async with set_up() as (them, http):
        going = [asyncio.create_task(ask(http)) for _ in range(4)]
        await asyncio.sleep(0)
        going[0].cancel()
        assert {await task for task in going[1:]} <= set(ADDRESSES)
        assert sum(them.requests) <= 4


async def test_one_address_is_asked_without_a_look_at_its_readiness() -> None:
    async with set_up(1) as (them, http):
        them.every[0].takes_work = False
        await ask(http)
        await asyncio.sleep(0.1)
        assert await ask(http) == ADDRESSES[0]
        assert [(load.state, load.requests) for load in http.loads()] == [("ready", 2)]


async def test_loads_count_each_replica_and_outlive_it() -> None:
    async with set_up(2) as (them, http):
        them.every[1].holding.clear()
        response = [await opened(http), await opened(http)]
        assert [(load.replica, load.outstanding, load.requests) for load in http.loads()] == [("0", 1, 1), ("1", 1, 1)]
        them.addresses.pop()
        await eventually(lambda: states(http) == ["ready", "gone"])
        assert [load.requests for load in http.loads()] == [1, 1]
        for each in response:
            each.close()


async def test_an_engine_client_balances_chats_and_keeps_raw_streams_open() -> None:
    async with replicas(2) as them, AsyncExitStack() as stack:
        engine = await stack.enter_async_context(EngineClient(them.url, model="m", balancing=them.rules()))
        for _ in range(4):
            (await engine.send_raw(b"{}", path="chat/completions")).close()
        assert them.requests == [2, 2]


async def test_a_store_client_balances() -> None:
    async with replicas(2) as them:
        root = them.url.removesuffix("/v1")
        async with StoreClient(root, balancing=them.rules()) as store:
            for _ in range(4):
                with pytest.raises(Exception, match="answered no Entities"):
                    await store.entities(Scope(tenant="t"))
        assert them.requests == [2, 2]


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["10.0.0.2", "10.0.0.1", "10.0.0.1"], ("10.0.0.1", "10.0.0.2")),
        (["10.0.0.1"], ("10.0.0.1",)),
        (["fd00::1", "10.0.0.1"], (None,)),
        (["fd00::1", "fd00::2", "10.0.0.1", "10.0.0.2"], ("10.0.0.1", "10.0.0.2")),
        (["fd00::2", "fd00::1"], ("fd00::1", "fd00::2")),
        ([], ()),
    ],
    ids=["several", "one", "one of each family", "two of each family", "only six", "none"],
)
def test_a_replica_has_one_address_of_each_family(addresses: list[str], expected: tuple[str | None, ...]) -> None:
    assert replicas_at(addresses) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://engine:7803/v1", True),
        ("http://localhost:7803/v1", False),
        ("http://127.0.0.1:7803/v1", False),
        ("http://[fd00::1]:7803/v1", False),
    ],
)
def test_only_a_name_may_stand_for_several_replicas(url: str, *, expected: bool) -> None:
    assert has_a_name(URL(url)) is expected


async def test_the_systems_resolver_gives_addresses() -> None:
    assert set(await system_addresses("localhost", 80)) <= {"127.0.0.1", "::1"}
