"""Work that ends when the client of its request leaves, and only then."""

import asyncio

import pytest
from starlette.types import Message

from memloop_service.http.admission import Awaited, ClientGone, DeadlinePassed


class Connection:
    """The server's end: more of the request as often as ``wake`` is called, and then that the client has left."""

    def __init__(self) -> None:
        self.gone = False
        self._news = asyncio.Event()
        self.listeners = 0

    async def receive(self) -> Message:
        self.listeners += 1
        try:
            await self._news.wait()
        finally:
            self.listeners -= 1
        self._news.clear()
        return {"type": "http.disconnect"} if self.gone else {"type": "http.request", "body": b"", "more_body": False}

    def wake(self) -> None:
        self._news.set()

    def leave(self) -> None:
        self.gone = True
        self._news.set()


@pytest.fixture
async def client() -> Connection:
    return Connection()


async def _work(client: Connection, seconds: float = 300.0) -> str:
    async with Awaited(client.receive):
        await asyncio.sleep(seconds)
    return "done"


async def test_a_client_that_leaves_ends_the_work(client: Connection) -> None:
    asyncio.get_running_loop().call_later(0.01, client.leave)
    with pytest.raises(ClientGone):
        await _work(client)
    await asyncio.sleep(0)  # a cancelled receive ends in the next turn
    assert client.listeners == 0


async def test_news_of_another_kind_does_not(client: Connection) -> None:
    work = asyncio.create_task(_work(client, 0.05))
    for _ in range(3):
        await asyncio.sleep(0.01)
        client.wake()
    assert await work == "done"


async def test_a_client_that_has_left_before_ends_the_work_at_its_first_wait(client: Connection) -> None:
    client.leave()
    with pytest.raises(ClientGone):
        await _work(client)


async def test_a_receive_that_only_gives_way_is_run_on() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        async with Awaited(receive):
            await asyncio.sleep(300)


async def test_a_cancellation_from_outside_stays_one(client: Connection) -> None:
    work = asyncio.create_task(_work(client))
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert client.listeners == 0


async def test_a_cancellation_from_outside_wins_over_a_client_that_leaves_at_once(client: Connection) -> None:
    work = asyncio.create_task(_work(client))
    await asyncio.sleep(0.01)
    client.leave()
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.parametrize("turns", range(4))
async def test_a_client_that_leaves_as_the_work_ends_stops_nothing_that_comes_after(
    client: Connection, turns: int
) -> None:
    ended = asyncio.Event()

    async def worked() -> str:
        try:
            async with Awaited(client.receive):
                await ended.wait()
        except ClientGone:
            return "gone"
        await asyncio.sleep(0.02)
        return "done"

    work = asyncio.create_task(worked())
    await asyncio.sleep(0.01)
    client.leave()
    for _ in range(turns):
        await asyncio.sleep(0)
    ended.set()
    assert await work in {"gone", "done"}
    await asyncio.sleep(0)
    assert (work.cancelling(), client.listeners) == (0, 0)


async def test_a_deadline_inside_is_a_deadline(client: Connection) -> None:
    with pytest.raises(TimeoutError):
        async with Awaited(client.receive), asyncio.timeout(0.01):
            await asyncio.sleep(300)


async def test_a_client_that_leaves_after_its_deadline_changes_nothing(client: Connection) -> None:
    async def worked() -> None:
        async with Awaited(client.receive, seconds=0.01):
            try:
                await asyncio.sleep(300)
            finally:
                client.leave()
                await asyncio.sleep(0.01)

    with pytest.raises(DeadlinePassed):
        await worked()
