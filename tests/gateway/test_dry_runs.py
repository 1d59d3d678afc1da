"""Every deletion of more than one thing can be tried: a dry run counts what would go, and deletes nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.tenants import World, two_tenants


async def _deleted(world: World, path: str, body: object = None) -> Any:
    answer = await world.call(ALICE_KEY, "DELETE", path.format_map(world.ids), body)
    assert answer.status == 200, answer.raw
    return answer.json


async def test_a_dry_run_counts_what_the_erasure_takes(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        before = await world.what_a_owns()
        counted = await _deleted(world, "/v1/memory?user_id=alice&dry_run=true")
        assert counted.pop("dry_run") is True
        assert await world.what_a_owns() == before
        assert (await _deleted(world, "/v1/memory?user_id=alice&run_id=none&dry_run=true"))["vectors"] == 0

        assert await _deleted(world, "/v1/memory?user_id=alice&dry_run=false") == counted
        assert counted["vectors"] >= 2
        assert counted["buffers"] == counted["queue"] == 1
        assert counted["events"] >= 3


async def test_a_dry_run_of_mem0s_deletions_counts_and_deletes_nothing(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        before = await world.what_a_owns()
        memories = (await _deleted(world, "/v1/memory?user_id=alice&dry_run=true"))["vectors"]
        of_alice = {"message": "Dry run: nothing was deleted.", "dry_run": True, "memories": memories, "users": 1}
        for path in (
            "/v1/memories/?user_id=alice&dry_run=true",
            "/v1/memories/?user_id=*&dry_run=true",
            "/v1/memories/?filters=%7B'user_id':'alice'%7D&dry_run=true",
            "/v2/entities/user/alice/?dry_run=true",
        ):
            assert await _deleted(world, path) == of_alice
        one = await _deleted(world, "/v1/memories/{item}/?delete_linked=true&dry_run=true")
        several = await _deleted(world, "/v1/batch/?dry_run=true", {"memories": [{"memory_id": world.ids["item"]}]})
        assert one["memories"] == several["memories"] == 1
        assert await world.what_a_owns() == before


@pytest.mark.parametrize("value", ["maybe", "", "2"])
async def test_a_dry_run_that_is_no_boolean_deletes_nothing(value: str, redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        before = await world.what_a_owns()
        for path in ("/v1/memory?user_id=alice", "/v1/memories/?user_id=alice", "/v2/entities/user/alice/?"):
            answer = await world.call(ALICE_KEY, "DELETE", f"{path}&dry_run={value}".replace("?&", "?"))
            assert (answer.status, answer.json["error"]["param"]) == (422, "dry_run")
        assert await world.what_a_owns() == before
