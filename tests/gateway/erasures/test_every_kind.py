"""What a user said, by any route, and what was derived from it, is nowhere after the user's erasure and a flush."""

import logging
from pathlib import Path

import pytest

from gateway.worker import working
from tests.gateway.erasures.kinds import KINDS
from tests.gateway.erasures.places import files_that_hold, kinds_that_hold
from tests.gateway.erasures.planting import (
    PLANTED,
    STORES_NOTHING,
    WEBHOOKS,
    Planter,
    answer,
    plant_all,
    routes_with_bodies,
)
from tests.gateway.erasures.stack import Stack, whole_stack

ERASED, KEPT = "mark-erased-4711", "mark-kept-0815"
OF_USERS = {name for name, kind in KINDS.items() if kind.holds == "texts" and kind.erased != "never"}
"""The kinds of keys that an erasure must reach."""
IN_MID_WORK = {"dead", "journal"}
"""They are of writes that are not done, or that the store refuses: ``test_random_moments`` erases users with such."""


async def planted(stack: Stack, *planters: Planter) -> None:
    """Say the markers everywhere, then leave some in the queues."""
    async with working(stack.gateway.work, stack.settings):
        for planter in planters:
            await plant_all(planter)
    for planter in planters:
        await planter.wait()


async def test_every_route_that_takes_a_body_is_planted_or_stores_nothing(tmp_path: Path) -> None:
    async with whole_stack(tmp_path, answer) as stack:
        routes = routes_with_bodies((await stack.gateway.get("/openapi.json")).json)
    assert routes - PLANTED.keys() - STORES_NOTHING == set()


async def test_after_an_erasure_and_a_flush_a_marker_is_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with whole_stack(tmp_path, answer, job_attempts=1, **WEBHOOKS) as stack:
        erased = Planter(stack.gateway, ERASED, {"user_id": "ada"})
        kept = Planter(stack.gateway, KEPT, {"user_id": "bob"})
        await planted(stack, erased, kept)
        redis = stack.gateway.redis
        before = await kinds_that_hold(redis, ERASED)
        assert OF_USERS - IN_MID_WORK - before == set(), "say the marker where this kind is written"
        others = await kinds_that_hold(redis, KEPT)

        counts = await stack.erase(user_id="ada")
        assert {name: count for name, count in counts.items() if count == 0} == {}, counts
        assert await kinds_that_hold(redis, ERASED) == set()
        assert await kinds_that_hold(redis, KEPT) == others
        assert await redis.zrange("memloop:{q0}:owners:local", 0, -1) == ["bob"]  # pyright: ignore
        await stack.flush()
        assert files_that_hold([ERASED], *stack.folders) == []
        assert files_that_hold([KEPT], *stack.folders) != []
        assert ERASED not in caplog.text
        assert all(count == 0 for count in (await stack.erase(user_id="ada")).values())


async def test_an_erased_agent_takes_its_own_and_leaves_the_rest(tmp_path: Path) -> None:
    async with whole_stack(tmp_path, answer, job_attempts=1, **WEBHOOKS) as stack:
        erased = Planter(stack.gateway, ERASED, {"user_id": "ada", "agent_id": "one"})
        kept = Planter(stack.gateway, KEPT, {"user_id": "ada", "agent_id": "two"})
        await planted(stack, erased, kept)
        redis = stack.gateway.redis
        others, stored = await kinds_that_hold(redis, KEPT), len(files_that_hold([KEPT], stack.folders[1]))

        await stack.erase(user_id="ada", agent_id="one")
        assert await kinds_that_hold(redis, ERASED) == set()
        assert await kinds_that_hold(redis, KEPT) == others
        assert len(files_that_hold([KEPT], stack.folders[1])) == stored
        await stack.flush()
        assert files_that_hold([ERASED], *stack.folders) == []
        assert (await stack.gateway.post("/v1/memory/search", {"query": KEPT, "user_id": "ada"})).json["results"]
