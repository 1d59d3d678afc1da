"""A tenant above its share begins while the event loop keeps up; the others begin at once."""

import asyncio
import time

from memloop_service.http import Pace

FLOOD = 200


async def began(pace: Pace, tenant: str, order: list[str]) -> None:
    await pace.turn(tenant)
    order.append(tenant)


async def test_a_tenant_that_is_alone_never_waits() -> None:
    pace, order = Pace(), list[str]()
    tasks = [asyncio.create_task(began(pace, "flood", order)) for _ in range(FLOOD)]
    await asyncio.sleep(0)
    assert len(order) == FLOOD
    await asyncio.gather(*tasks)


async def test_a_small_tenant_begins_at_once_beside_a_flood() -> None:
    pace, order = Pace(), list[str]()
    await pace.turn("small")
    flood = [asyncio.create_task(began(pace, "flood", order)) for _ in range(FLOOD)]
    await asyncio.sleep(0)
    waiting = FLOOD - len(order)
    await began(pace, "small", order)
    assert order[-1] == "small"
    assert waiting > FLOOD // 2
    await asyncio.gather(*flood)
    assert order.count("flood") == FLOOD


async def test_a_late_loop_begins_few_of_a_flood() -> None:
    pace, order = Pace(), list[str]()
    await pace.turn("small")
    flood = [asyncio.create_task(began(pace, "flood", order)) for _ in range(FLOOD)]
    await asyncio.sleep(0)
    at_first = len(order)
    for _ in range(20):
        time.sleep(0.02)  # noqa: ASYNC251 - the loop is held up
        await asyncio.sleep(0)
    assert len(order) - at_first <= 10
    for task in flood:
        task.cancel()


async def test_one_large_body_costs_as_much_as_many_requests() -> None:
    pace, order = Pace(), list[str]()
    for _ in range(20):
        await pace.turn("many")
    large = asyncio.create_task(pace.turn("large", 8 << 20))
    await began(pace, "many", order)
    assert not large.done()
    await large


async def test_requests_that_are_cancelled_leave_their_turn_to_others() -> None:
    pace, order = Pace(), list[str]()
    await pace.turn("small")
    flood = [asyncio.create_task(began(pace, "flood", order)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in flood[10:]:
        task.cancel()
    await asyncio.wait(flood)
    assert order.count("flood") == 10
