"""Concurrent work ends with the error of its first failure, not with a group of errors."""

import asyncio

import pytest

from trainer.data.bounded_map import bounded_map, first_error


async def fails() -> None:
    raise OSError(28, "No space left on device")


async def group_of_one() -> None:
    async with asyncio.TaskGroup() as inner:
        inner.create_task(fails())


async def test_the_error_of_a_group_within_a_group_is_raised_as_it_is() -> None:
    with pytest.raises(OSError, match="No space left"), first_error():
        async with asyncio.TaskGroup() as outer:
            outer.create_task(group_of_one())


async def test_an_error_of_work_that_has_groups_of_its_own_is_raised_as_it_is() -> None:
    async def work(_: int) -> None:
        await group_of_one()

    with pytest.raises(OSError, match="No space left"):
        await bounded_map(2, iter(range(3)), work)
