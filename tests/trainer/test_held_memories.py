"""Memories in this process as the memory writer's loop searches them."""

from datetime import UTC, datetime

from memloop.ports import Recalled
from trainer.memories import HeldMemories


def held(number: int, text: str) -> Recalled:
    return Recalled(str(number), text, datetime(2026, 1, number, tzinfo=UTC))


MEMORIES = HeldMemories(
    [held(1, "The dock code of Lima is 9."), held(2, "The locker code of Ann is 7."), held(3, "The code of Oslo is 5.")]
)


async def test_rare_words_of_the_query_count_most() -> None:
    found = await MEMORIES.search("locker code of the user", top_k=2)
    assert next(each.id for each in found) == "2"


async def test_of_equally_good_memories_the_newer_comes_first() -> None:
    found = await MEMORIES.search("nothing that is held", top_k=3)
    assert [each.id for each in found] == ["3", "2", "1"]


async def test_no_memories_are_no_results() -> None:
    assert await HeldMemories([]).search("anything", top_k=5) == []
