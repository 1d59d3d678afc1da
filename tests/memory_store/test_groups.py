"""Work that is done for several callers at once."""

import asyncio
from collections.abc import Sequence

import pytest

from memloop.chores import Groups


class Work:
    """Doubles numbers once it is let; 13 fails for its caller, 0 for the whole group."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.let = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> Sequence[int | Exception]:
        self.groups.append(list(numbers))
        await self.let.wait()
        if 0 in numbers:
            raise LookupError("none")
        return [ValueError("unlucky") if number == 13 else 2 * number for number in numbers]


async def begun() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_caller_that_is_alone_does_not_wait_for_company() -> None:
    work = Work()
    work.let.set()

    assert await Groups(work, under_way=1, most=8).join(4) == 8
    assert work.groups == [[4]]


async def test_what_arrives_while_groups_are_worked_on_forms_the_next() -> None:
    work = Work()
    groups = Groups(work, under_way=1, most=3)
    first = asyncio.create_task(groups.join(1))
    await begun()
    others = [asyncio.create_task(groups.join(number)) for number in (2, 3, 4, 5)]
    await begun()
    work.let.set()

    assert [await first, *await asyncio.gather(*others)] == [2, 4, 6, 8, 10]
    assert work.groups == [[1], [2, 3, 4], [5]]


async def test_groups_are_worked_on_beside_each_other_up_to_the_limit() -> None:
    work = Work()
    groups = Groups(work, under_way=2, most=1)
    callers = [asyncio.create_task(groups.join(number)) for number in (1, 2, 3)]
    await begun()
    assert work.groups == [[1], [2]]
    work.let.set()
    await asyncio.gather(*callers)

    assert work.groups == [[1], [2], [3]]


async def test_an_error_is_that_of_its_caller() -> None:
    work = Work()
    work.let.set()
    groups = Groups(work, under_way=1, most=8)
    found = await asyncio.gather(*(groups.join(number) for number in (1, 13, 2)), return_exceptions=True)

    assert found[::2] == [2, 4]
    assert isinstance(found[1], ValueError)


async def test_work_that_fails_as_a_whole_fails_for_all_of_its_group() -> None:
    work = Work()
    work.let.set()
    groups = Groups(work, under_way=1, most=8)
    found = await asyncio.gather(groups.join(1), groups.join(0), return_exceptions=True)

    assert [type(one) for one in found] == [LookupError, LookupError]
    assert await groups.join(3) == 6


async def test_a_caller_that_gives_up_before_its_group_begins_is_left_out() -> None:
    work = Work()
    groups = Groups(work, under_way=1, most=8)
    first = asyncio.create_task(groups.join(1))
    await begun()
    gone = asyncio.create_task(groups.join(2))
    await begun()
    gone.cancel()
    work.let.set()
    await first

    with pytest.raises(asyncio.CancelledError):
        await gone
    assert await groups.join(3) == 6
    assert work.groups == [[1], [3]]


async def test_a_caller_that_gives_up_stays_until_its_group_has_ended() -> None:
    work = Work()
    groups = Groups(work, under_way=1, most=8)
    gone = asyncio.create_task(groups.join(1))
    await begun()
    gone.cancel()
    await begun()
    assert not gone.done()
    work.let.set()

    with pytest.raises(asyncio.CancelledError):
        await gone
