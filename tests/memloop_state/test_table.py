"""A table on a real Redis: quotas, ends, owners and rows hold in each step, whatever happens beside it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from redis.asyncio import Redis

from memloop.wire.memory import Namespace, Scope
from memloop_state.connecting import connect
from memloop_state.owners import Owner, Owners
from memloop_state.steps import Partitions, guard_of
from memloop_state.table import Row, Table

ALICE = Namespace(tenant="acme", user_id="alice")


@pytest.fixture
async def redis(redis_url: str) -> AsyncGenerator[Redis]:
    async with connect(redis_url, connect_timeout_s=30.0, read_timeout_s=30.0) as client:
        yield client


async def put(table: Table, record_id: str, body: str = "x", *, owners: tuple[Owner, ...] = ()) -> str:
    return await table.put("acme", record_id, {"body": body}, size=len(body), owners=owners)


async def test_a_record_is_found_as_it_was_stored_and_only_by_its_tenant(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes")
    assert await table.put("acme", "n1", {"body": "Grüße", "at": 7}, size=7) == "kept"
    assert await table.get("acme", "n1") == {"body": "Grüße", "at": "7", "bytes": "7"}
    assert await table.get("other", "n1") is None


async def test_records_are_listed_oldest_first(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes")
    for number in range(3):
        await put(table, f"n{number}")
    await put(table, "n0", "again")
    assert await table.ids("acme") == ["n0", "n1", "n2"]


async def test_of_many_at_once_as_many_are_kept_as_the_tenant_may_have(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most=5)
    outcomes = await asyncio.gather(*(put(table, f"n{number}") for number in range(20)))
    assert (outcomes.count("kept"), outcomes.count("many"), len(await table.ids("acme"))) == (5, 15, 5)


async def test_of_many_at_once_as_many_bytes_are_kept_as_the_tenant_may_have(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_bytes=100)
    outcomes = await asyncio.gather(*(put(table, f"n{number}", "x" * 30) for number in range(10)))
    assert (outcomes.count("kept"), outcomes.count("full")) == (3, 7)


async def test_a_record_in_the_place_of_another_counts_once(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most=1, most_bytes=100)
    assert [await put(table, "n1", "x" * size) for size in (90, 80, 100, 101)] == ["kept", "kept", "kept", "full"]
    assert (await table.standing("acme", "n1")).tenant_bytes == 100


async def test_a_deleted_record_leaves_room_and_nothing_in_redis(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_bytes=100, keep_s=60)
    assert await put(table, "n1", "x" * 100, owners=(Owner(ALICE, 0),)) == "kept"
    assert [await table.delete("acme", "n1") for _ in range(2)] == ["deleted", "gone"]
    assert await put(table, "n2", "x" * 100) == "kept"
    await table.delete("acme", "n2")
    assert await redis.keys("*note*") == []  # pyright: ignore


async def test_the_oldest_go_where_a_table_lets_them(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most=2, oldest_out=True, keep_s=60)
    for number in range(4):
        assert await put(table, f"n{number}") == "kept"
        await asyncio.sleep(0.002)  # the index orders by milliseconds
    assert sorted(await table.ids("acme")) == ["n2", "n3"]
    assert [await table.get("acme", f"n{number}") for number in range(2)] == [None, None]


async def test_what_has_ended_counts_no_more(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most=1, most_bytes=10, keep_s=0.05)
    assert await put(table, "n1", "x" * 10) == "kept"
    await asyncio.sleep(0.1)
    assert (await table.get("acme", "n1"), await table.ids("acme")) == (None, [])
    assert await put(table, "n2", "x" * 10) == "kept"


async def test_a_renewed_record_stays_for_as_long_again(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", keep_s=1.0)
    await put(table, "n1", "said")
    for _ in range(3):
        await asyncio.sleep(0.5)
        assert await table.renew("acme", "n1", ["body"]) == ["said"]
    assert await table.renew("acme", "gone", ["body"]) == []


async def test_what_is_being_made_holds_its_bytes_until_it_is_put_or_released(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_bytes=100, keep_s=60)
    taken = [await table.reserve("acme", one, size=60, lease_s=60) for one in ("n1", "n2", "n1")]
    assert taken == ["taken", "full", "taken"]
    await table.release("acme", "n1")
    assert await table.reserve("acme", "n2", size=60, lease_s=60) == "taken"
    assert await put(table, "n2", "x" * 100) == "kept"
    await table.release("acme", "n2")
    assert (await table.standing("acme", "n2")).tenant_bytes == 100


async def test_bytes_of_what_was_never_put_return_with_the_end_of_the_lease(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_bytes=100, keep_s=60)
    await table.reserve("acme", "n1", size=100, lease_s=0.05)
    await asyncio.sleep(0.1)
    assert await put(table, "n2", "x" * 100) == "kept"


async def test_an_owner_finds_the_record_until_it_is_deleted(redis: Redis) -> None:
    table, owners = Table(redis, "note", kind="notes"), Owners(redis)
    await put(table, "n1", owners=(Owner(ALICE, 0),))
    assert await owners.records(ALICE) == [("notes", "n1")]
    await table.delete("acme", "n1")
    assert await owners.records(ALICE) == []


async def owner_ends(redis: Redis) -> list[int]:
    """The hours after which a user's index and the tenant's owners end: -1 never, -2 if they are gone."""
    at = Partitions(redis).of_name("acme")
    seconds = [await redis.ttl(key) for key in (at.hidden("owned", ALICE.lane()), at.key("owners", "acme"))]  # pyright: ignore
    return [left if left < 0 else round(left / 3600) for left in seconds]


async def test_the_names_of_owners_end_with_the_last_of_their_records(redis: Redis) -> None:
    day, hour, lasting = (Table(redis, "note", kind="notes", keep_s=keep_s) for keep_s in (86_400, 3_600, None))
    mine = (Owner(ALICE, 0),)
    for table, record_id in ((hour, "n1"), (day, "n2"), (hour, "n3")):
        await put(table, record_id, owners=mine)
    assert await owner_ends(redis) == [24, 24]
    await put(lasting, "n4", owners=mine)
    assert await owner_ends(redis) == [-1, -1]
    await lasting.delete("acme", "n4")
    assert await owner_ends(redis) == [24, 24]
    await day.delete("acme", "n2")
    assert await owner_ends(redis) == [1, 1]
    for record_id in ("n1", "n3"):
        await hour.delete("acme", record_id)
    assert await owner_ends(redis) == [-2, -2]


async def test_a_user_whose_records_have_ended_is_listed_no_more(redis: Redis) -> None:
    short, long = (Table(redis, "note", kind="notes", keep_s=keep_s) for keep_s in (0.05, 60))
    await put(long, "n1", owners=(Owner(Namespace(tenant="acme", user_id="bob"), 0),))
    await put(short, "n2", owners=(Owner(ALICE, 0),))
    await asyncio.sleep(0.1)
    assert await Owners(redis).users(Scope(tenant="acme")) == ["bob"]


async def test_work_that_began_before_an_erasure_is_refused_after_it(redis: Redis) -> None:
    table, owners = Table(redis, "note", kind="notes", keep_s=60), Owners(redis)
    await owners.mark(ALICE, 7)
    assert [await put(table, "n1", owners=(Owner(ALICE, began),)) for began in (6, 7)] == ["erased", "kept"]


async def test_the_erasure_of_another_agent_refuses_nothing(redis: Redis) -> None:
    table, owners = Table(redis, "note", kind="notes", keep_s=60), Owners(redis)
    mine = Namespace(tenant="acme", user_id="alice", agent_id="mine")
    await owners.mark(Namespace(tenant="acme", user_id="alice", agent_id="other"), 7)
    assert await put(table, "n1", owners=(Owner(mine, 6),)) == "kept"


async def test_a_record_is_stored_only_if_the_hash_is_as_it_was_read(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes")
    place = Partitions(redis).of_name("acme").key("rules")  # in the same slot
    guard = guard_of(place, ["a", "b"], {"a": "1"})
    outcomes: list[str] = []
    for field in ("a", "b"):
        await redis.hset(place, field, "1")  # pyright: ignore
        outcomes.append(await table.put("acme", "n1", {"body": field}, size=1, guard=guard))
    assert outcomes == ["kept", "stale"]


async def test_nothing_is_stored_until_the_table_is_switched_on(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", switches=True)
    outcomes = [await put(table, "n1")]
    await table.switch("acme", on=True)
    assert [bool(await table.switches.get(tenant)) for tenant in ("acme", "other")] == [True, False]
    outcomes.append(await put(table, "n1"))
    await table.switch("acme", on=False)
    assert [*outcomes, await put(table, "n1")] == ["off", "kept", "off"]


async def test_a_field_is_replaced_within_the_quota(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_bytes=10)
    await put(table, "n1", "x" * 8)
    change = {"body": "x" * 11}
    assert await table.change("acme", "n1", change, counted=True) == "full"
    assert await table.change("acme", "n1", change, counted=True, anyway=True) == "changed"
    assert await table.change("acme", "gone", change) == "gone"
    assert (await table.standing("acme", "n1")).tenant_bytes == 11


async def test_a_field_is_replaced_only_if_others_are_as_they_were_read(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes")
    await table.put("acme", "n1", {"body": "Ä", "title": "a"}, size=0)
    read = await table.get("acme", "n1") or {}
    same = {name: read[name] for name in ("body", "title")}
    assert await table.change("acme", "n1", {"body": "new"}, if_still=same, ends_at=1.5) == "changed"
    assert await table.change("acme", "n1", {"body": "newer"}, if_still=same, ends_at=0) == "stale"
    assert await table.change("acme", "gone", {"body": "newer"}, if_still=same) == "gone"
    assert (await table.get("acme", "n1") or {})["body"] == "new"
    assert await table.ended() == [("acme", "n1")]


async def test_records_with_an_end_of_their_own_are_found_after_it(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes")
    for record_id, ends_at in (("n1", 1.5), ("n2", 99e9), ("n3", 1.5)):
        await put(table, record_id)
        await table.change("acme", record_id, {}, ends_at=ends_at)
    await table.change("acme", "n3", {}, ends_at=0)
    assert await table.ended() == [("acme", "n1")]
    await table.delete("acme", "n1")
    assert await table.ended() == []


async def test_rows_are_paged_in_the_order_in_which_they_came(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", keep_s=60)
    await table.put("acme", "n1", {}, size=0, rows=[Row("r0", "first line", 10)])
    assert (
        await table.put("acme", "n1", {}, rows=[Row(f"r{number}", "more", 4) for number in (1, 2)], known=True)
        == "kept"
    )
    outcome, rows, more = await table.rows("acme", "n1", limit=2)
    assert (outcome, [(row.id, row.text, row.number) for row in rows], more) == (
        "found",
        [("r0", "first line", 1), ("r1", "more", 2)],
        True,
    )
    _, rows, more = await table.rows("acme", "n1", limit=2, after="r1", newest_first=True)
    assert ([row.id for row in rows], more) == (["r0"], False)
    assert (await table.rows("acme", "n1", limit=2, after="none"))[0] == "after"
    assert (await table.rows("acme", "gone", limit=2))[0] == "gone"


async def test_rows_count_by_group_and_by_bytes(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", record_bytes=100, most_rows=2)
    await table.put("acme", "n1", {"body": "x"}, size=0)
    await table.put("acme", "n1", {}, rows=[Row("r1", "", 0, "busy", "j1"), Row("r2", "", 0, "busy", "j2")], known=True)
    assert await table.put("acme", "n1", {}, rows=[Row("r3", "", 0)], known=True) == "rows"
    first, second = await table.some_rows("acme", "n1", ["r1", "r2"])
    assert await table.change_row("acme", "n1", first, Row("r1", "text", 90, "done", "j1")) == "changed"
    assert await table.change_row("acme", "n1", first, Row("r1", "stale", 80, "busy", "j1")) == "gone"
    assert await table.change_row("acme", "n1", second, Row("r2", "text", 90, "done", "j2")) == "long"
    found = await table.get("acme", "n1") or {}
    assert (found["rows:busy"], found["rows:done"], found["bytes"]) == ("1", "1", "90")
    assert [await table.delete_row("acme", "n1", "r1") for _ in range(2)] == ["deleted", "gone"]
    assert (await table.standing("acme", "n1")).record_bytes == 0
    assert await table.delete("acme", "n1") == "deleted"


async def test_a_row_comes_once_or_is_replaced(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", most_rows=1)
    await table.put("acme", "n1", {"body": "x"}, size=0)
    assert await table.put("acme", "n1", {}, rows=[Row("r1", "old", 3)], known=True) == "kept"
    assert await table.put("acme", "n1", {}, rows=[Row("r1", "new", 5)], known=True) == "duplicate"
    assert await table.put("acme", "n1", {}, rows=[Row("r1", "new", 5)], replace=True, known=True) == "kept"
    assert await table.row("acme", "n1", "r1") == Row("r1", "new", 5, number=2)
    assert await table.with_row("acme", "r1") == ["n1"]
    assert (await table.standing("acme", "n1")).record_bytes == 5


async def test_rows_go_with_their_record(redis: Redis) -> None:
    table = Table(redis, "note", kind="notes", keep_s=60)
    await table.put("acme", "n1", {"body": "x"}, size=1, rows=[Row("r1", "text", 4)])
    assert await table.delete("acme", "n1", if_empty=True) == "rows"
    assert await table.delete("acme", "n1") == "deleted"
    assert (await table.put("acme", "n1", {}, rows=[Row("r1", "text", 4)], known=True)) == "gone"
    assert await redis.keys("*note*") == []  # pyright: ignore


async def test_two_users_of_a_record_both_find_it_and_each_counts(redis: Redis) -> None:
    table, owners = Table(redis, "note", kind="notes", most_bytes=10_000, owner_bytes=100, keep_s=60), Owners(redis)
    bob = Namespace(tenant="acme", user_id="bob")
    await table.put("acme", "n1", {"body": "x"}, size=1, owners=(Owner(ALICE, 0),))
    one = (await table.standing("acme", "n1")).record_bytes
    for _ in range(2):
        await table.put("acme", "n1", {}, owners=(Owner(bob, 0),), known=True)
    assert [await owners.records(user) for user in (ALICE, bob)] == [[("notes", "n1")]] * 2
    assert (await table.standing("acme", "n1")).record_bytes - one == one - 1
