"""Two tenants with a real mem0 client each: the second knows the first one's user and ids, and reaches nothing."""

import pytest
from mem0.exceptions import MemoryNotFoundError  # pyright: ignore[reportMissingTypeStubs]

from tests.gateway.api_rig import BOB_KEY
from tests.gateway.mem0_client.drop_in import Client, DropIn, Kind


async def owned(client: Client) -> tuple[list[str], list[str]]:
    """All that a tenant has: its texts, and its entities."""
    entities = (await client.call("users"))["results"]
    return await client.listed(user_id="*"), sorted(one["name"] for one in entities)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_another_tenants_client_reaches_nothing(it: DropIn, kind: Kind) -> None:
    alice, bob = await it.alice(kind), await it.bob(kind)
    item_id = await alice.added("Tea at five.", agent_id="home", run_id="r1")
    event_id = (await alice.call("add", "I like green tea.", user_id="ann", async_mode=False))["event_id"]
    before = await owned(alice)

    for method, args in {
        "get": (item_id,),
        "update": (item_id, None),
        "delete": (item_id,),
        "history": (item_id,),
        "batch_update": ([{"memory_id": item_id, "text": "Bob was here."}],),
        "batch_delete": ([{"memory_id": item_id}],),
    }.items():
        with pytest.raises(MemoryNotFoundError):
            await bob.call(method, *args, **({"text": "Bob was here."} if method == "update" else {}))
    for filters in (
        {"user_id": "ann"},
        {"user_id": "*"},
        {"OR": [{"user_id": "ann"}, {"agent_id": "*"}, {"NOT": [{"user_id": "nobody"}]}]},
        {"user_id": "ann", "tenant": "a"},
        {"user_id": "ann", "metadata": {"tenant": {"ne": "b"}}},
    ):
        assert (await bob.call("search", "tea", filters=filters))["results"] == []
        assert (await bob.call("get_all", filters=filters, latest_only=False))["count"] == 0
    assert (await bob.call("users"))["results"] == []
    event = await it.gateway.get(f"/v1/event/{event_id}/", headers={"Authorization": f"Token {BOB_KEY}"})
    assert event.status == 404

    await bob.call("delete_all", user_id="ann")
    await bob.call("delete_all", user_id="*")
    await bob.call("delete_users", agent_id="home")
    await bob.call("delete_users", run_id="r1")
    assert await owned(alice) == before
    assert before == (["Ann drinks green tea.", "Tea at five."], ["ann", "home", "r1"])


async def test_the_same_ids_in_two_tenants_are_two_memories(it: DropIn) -> None:
    alice, bob = await it.alice("async"), await it.bob("async")
    ids = {await alice.added("Tea at five."), await bob.added("Tea at five.")}
    await bob.call("reset")
    assert (len(ids), await alice.listed(user_id="ann"), await bob.listed(user_id="*")) == (2, ["Tea at five."], [])
