"""Few characters are computed with on the event loop, many in a thread."""

import threading

import pytest

from memloop_service.chores import computed


@pytest.mark.parametrize(("chars", "here"), [(20_000, True), (20_001, False)])
async def test_many_characters_are_for_a_thread(chars: int, here: bool) -> None:
    assert (await computed(threading.get_ident, chars=chars) == threading.get_ident()) is here
