"""Many characters are for a thread, and a timeout does not count the time in which the event loop was held up."""

import asyncio
import socket
import threading
import time

import pytest

from memloop.chores import computed, patient, patient_until


async def _answer(given: socket.socket) -> bytes:
    return await asyncio.get_running_loop().sock_recv(given, 1)


async def test_an_answer_that_came_while_the_loop_was_held_up_is_read() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        async with patient(0.05):
            asking = asyncio.create_task(_answer(ours))
            await asyncio.sleep(0)
            theirs.send(b"a")
            time.sleep(0.2)  # noqa: ASYNC251 - holds up the loop
            assert await asking == b"a"


async def test_without_an_answer_the_block_ends() -> None:
    with pytest.raises(TimeoutError):
        async with patient(0.01):
            await asyncio.Event().wait()


async def test_the_block_ends_even_if_the_loop_was_held_up() -> None:
    asyncio.get_running_loop().call_soon(time.sleep, 0.1)
    with pytest.raises(TimeoutError):
        async with patient(0.01):
            await asyncio.Event().wait()


async def test_a_deadline_in_the_past_ends_the_block() -> None:
    with pytest.raises(TimeoutError):
        async with patient_until(asyncio.get_running_loop().time() - 1.0):
            await asyncio.Event().wait()


async def test_a_block_in_time_leaves_no_timer() -> None:
    async with patient(0.01):
        pass
    await asyncio.sleep(0.03)


async def test_a_cancellation_from_outside_stays_one() -> None:
    async def wait() -> None:
        async with patient(60.0):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("chars", "here"), [(20_000, True), (20_001, False)])
async def test_many_characters_are_for_a_thread(chars: int, here: bool) -> None:
    assert (await computed(threading.get_ident, chars=chars) == threading.get_ident()) is here
