"""A short body is parsed on the event loop, a long one in a thread that rests."""

import threading
import time

import pytest

from memloop_service.http.bodies import parsed


@pytest.mark.parametrize(("size", "here"), [(16_384, True), (16_385, False)])
async def test_long_bodies_are_parsed_in_one_thread(size: int, here: bool) -> None:
    threads = {await parsed(threading.get_ident, size=size) for _ in range(3)}
    assert (threads == {threading.get_ident()}) is here
    assert len(threads) == 1


async def test_the_thread_rests_three_times_as_long_as_a_long_body_took() -> None:
    def compute() -> float:
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            pass
        return time.monotonic()

    ended = await parsed(compute, size=1 << 20)
    assert time.monotonic() - ended >= 0.06
