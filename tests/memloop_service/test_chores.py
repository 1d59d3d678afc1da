"""Few characters are computed with on the event loop, many in a thread."""

import threading

import pytest

from memloop_service.chores import computed, parsed


@pytest.mark.parametrize(("chars", "here"), [(20_000, True), (20_001, False)])
async def test_many_characters_are_for_a_thread(chars: int, here: bool) -> None:
    assert (await computed(threading.get_ident, chars=chars) == threading.get_ident()) is here


@pytest.mark.parametrize(("size", "here"), [(16_384, True), (16_385, False)])
async def test_long_bodies_are_parsed_in_one_thread(size: int, here: bool) -> None:
    threads = {await parsed(threading.get_ident, size=size) for _ in range(3)}
    assert (threads == {threading.get_ident()}) is here
    assert len(threads) == 1
