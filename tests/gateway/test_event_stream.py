"""Events on their way to a client that is quick, slow, or gone."""

import asyncio

import pytest
from starlette.types import Message

from gateway.http.event_stream import Outlet


class Client:
    """The server's end of a connection: takes messages while there is room."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self.got: list[bytes] = []
        self.waiting = 0

    async def send(self, message: Message) -> None:
        self.waiting += 1
        try:
            while not self.room.is_set():
                await self.room.wait()
        finally:
            self.waiting -= 1
        self.got.append(message["body"])


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
async def outlet(client: Client) -> Outlet:
    return Outlet(client.send, heartbeat_s=60)


async def test_what_is_offered_to_a_quick_client_is_sent_before_anybody_else_runs(
    client: Client, outlet: Outlet
) -> None:
    assert outlet.offer(b"a")
    assert client.got == [b"a"]


async def test_what_is_offered_to_a_slow_client_is_sent_once_when_there_is_room(client: Client, outlet: Outlet) -> None:
    client.room.clear()
    assert not outlet.offer(b"a")
    taken = asyncio.create_task(outlet.taken())
    for _ in range(3):  # woken twice for nothing
        await asyncio.sleep(0)
        assert client.got == []
        client.room.set()
        client.room.clear()
    client.room.set()
    await taken
    assert outlet.offer(b"b")
    assert client.got == [b"a", b"b"]


async def test_room_that_comes_before_anybody_waits_for_it_is_not_missed(client: Client, outlet: Outlet) -> None:
    client.room.clear()
    outlet.offer(b"a")
    client.room.set()
    await asyncio.wait_for(outlet.taken(), 20)
    assert client.got == [b"a"]


async def test_waiting_for_a_client_that_leaves_ends_the_send(client: Client, outlet: Outlet) -> None:
    client.room.clear()
    outlet.offer(b"a")
    taken = asyncio.create_task(outlet.taken())
    await asyncio.sleep(0)
    taken.cancel()
    await asyncio.wait({taken})
    client.room.set()
    await asyncio.sleep(0)
    assert (client.got, client.waiting) == ([], 0)
