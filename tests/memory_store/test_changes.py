"""The feed of changes: every way in which a memory changes, its order beside erasures, its bounds, its cursors."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import orjson
import pytest
from redis.asyncio import Redis

from memloop.wire.changes import LATEST, OLDEST, ChangePage, StoreChanges
from memloop.wire.errors import Gone, Unavailable
from memloop.wire.memory import Scope
from memloop.wire.store_requests import NumberedLine, StoreImport
from memloop_state.connecting import connect
from memloop_state.store.tenants import ChangeFeed
from memory_store.items.documents import now
from memory_store.items.guarded import by_tenant, erasure_changes
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.redis_server import RedisServer
from tests.memory_store.api import ALICE, StoreApi, day
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.feeds import feed_of

_SECRET = "The safe opens with rhubarb."


@pytest.fixture
async def link(redis_url: str) -> AsyncGenerator[Redis]:
    """The test's Redis."""
    client = connect(redis_url)
    yield client
    await client.aclose()


async def page(store: StoreApi, after: str = OLDEST, *, status: int = 200, **fields: object) -> ChangePage:
    """A page of the tenant's feed."""
    asked = StoreChanges.model_validate({"scope": {"tenant": ALICE.tenant}, "after": after, **fields})
    answer = await store.http.post("/v1/changes", content=asked.model_dump_json())
    assert answer.status_code == status, answer.text
    return ChangePage.model_validate_json(answer.content)


async def told(store: StoreApi) -> list[tuple[str, str]]:
    """Types, without their first word, and reasons of all changes."""
    return [(one.type.removeprefix("memory."), one.reason) for one in (await page(store)).changes]


async def test_a_new_fact_a_changed_one_and_a_repeated_one_are_told(store: StoreApi) -> None:
    first = await store.add("City", "Alice lives in Bern.", timestamp=day(1))
    second = await store.add("City", "Alice lives in Basel.", timestamp=day(2))
    await store.add("City", "Alice lives in Basel.", timestamp=day(3))
    assert await told(store) == [("added", "new fact"), ("updated", "changed fact"), ("updated", "same fact")]
    found = (await page(store)).changes
    assert [one.memory_id for one in found] == [first.item.id, second.item.id, second.item.id]
    assert found[1].supersedes == first.item.id
    assert found[0].user_id == "alice"


async def test_a_fact_stated_late_is_told_once_although_it_splits_another(store: StoreApi) -> None:
    await store.add("City", "Alice lives in Bern.", timestamp=day(1))
    await store.add("City", "Alice lives in Bern.", timestamp=day(9))
    await store.add("City", "Alice lives in Basel.", timestamp=day(5))
    assert await told(store) == [("added", "new fact"), ("updated", "same fact"), ("updated", "interlude")]


async def test_an_edit_a_deletion_and_its_recovery_are_told(store: StoreApi) -> None:
    item = (await store.add("City", "Alice lives in Bern.")).item
    await store.patch(item.id, {"memory": "Alice lives in Basel."})
    await store.delete(item.id)
    await store.recover(item.id)
    assert await told(store) == [
        ("added", "new fact"), ("updated", "edited"), ("deleted", "deleted"), ("added", "recovered"),
    ]  # fmt: skip
    assert {one.memory_id for one in (await page(store)).changes} == {item.id}


async def test_feedback_and_its_withdrawal_are_told(store: StoreApi) -> None:
    item = (await store.add("City", "Alice lives in Bern.")).item
    await store.judge(item.id, "outdated")
    await store.judge(item.id, None)
    assert await told(store) == [("added", "new fact"), ("updated", "outdated"), ("updated", "feedback withdrawn")]


async def test_an_edit_that_changes_nothing_is_not_told(store: StoreApi) -> None:
    item = (await store.add("City", "Alice lives in Bern.")).item
    await store.patch(item.id, {})
    assert await told(store) == [("added", "new fact")]


async def test_raw_turns_are_not_told(store: StoreApi) -> None:
    await store.add("turn", "Hello!", kind="RawTurn", event_id="e1")
    assert await told(store) == []


async def test_an_import_is_told_once_however_often_it_is_repeated(store: StoreApi) -> None:
    await store.add("City", "Alice lives in Bern.")
    exported = await store.http.post("/v1/items/export", json={"scope": ALICE.model_dump()})
    moved = {"id": str(uuid4()), "user_id": "bo"}
    lines = [line | {"item": line["item"] | moved} for line in exported.json()["lines"]]
    texts = tuple(NumberedLine(number=n, text=orjson.dumps(line).decode()) for n, line in enumerate(lines, 1))
    for _ in range(2):
        body = StoreImport(tenant=ALICE.tenant, lines=texts).model_dump_json()
        assert (await store.http.post("/v1/items/import", content=body)).status_code == 200
    assert await told(store) == [("added", "new fact"), ("added", "imported")]
    assert (await page(store)).changes[1].user_id == "bo"


async def test_a_memory_that_expires_is_told_as_deleted(edge_folder: Path, settings: Settings) -> None:
    settings = settings.model_copy(update={"sweep_s": 0.02})
    async with serving(app_over(QdrantEdge(edge_folder, flush_s=60), settings)) as http:
        store = StoreApi(http)
        await store.add("Guest", "Bo stays.", expires_at=now() + timedelta(milliseconds=300))
        while len(found := await told(store)) < 2:
            assert found == [("added", "new fact")]
    assert found[1] == ("deleted", "expired")


async def test_an_erasure_is_told_last_and_no_text_stays_in_redis(edge_folder: Path) -> None:
    redis = RedisServer.start(appendonly=True)
    try:
        settings = Settings(redis_url=redis.url, data_dir=edge_folder, embedding_model="hashing")
        async with serving(app_over(QdrantEdge(edge_folder, flush_s=60), settings)) as http:
            store = StoreApi(http)
            item = (await store.add("Safe", _SECRET)).item
            await store.patch(item.id, {"memory": f"{_SECRET} Still."})
            await store.erase()
            assert await told(store) == [("added", "new fact"), ("updated", "edited"), ("erased", "erased")]
            erased = (await page(store)).changes[2]
            assert (erased.memory_id, erased.user_id) == (None, "alice")
        files = b"".join(path.read_bytes() for path in redis.folder.rglob("*") if path.is_file())
        assert b"memory.erased" in files
        assert b"rhubarb" not in files
    finally:
        redis.stop()


async def test_a_scope_shows_its_own_changes_and_the_erasures_that_cover_it(store: StoreApi) -> None:
    await store.of(agent_id="a").add("City", "Bern.")
    await store.of(user_id="bo").add("City", "Basel.")
    await store.erase()
    mine = {"tenant": ALICE.tenant, "user_id": "alice", "agent_id": "a"}
    found = (await page(store, scope=mine)).changes
    assert [one.type for one in found] == ["memory.added", "memory.erased"]


async def test_another_tenant_sees_nothing(store: StoreApi) -> None:
    await store.add("City", "Bern.")
    assert (await page(store, scope={"tenant": "t2"})).changes == ()


async def test_a_reader_resumes_after_any_change_and_from_the_end(store: StoreApi) -> None:
    latest = (await page(store, LATEST)).cursor
    assert latest == OLDEST
    for number in range(5):
        await store.add(f"Fact {number}", f"It is {number}.")
    first = await page(store, limit=2)
    rest = await page(store, first.cursor, limit=3)
    assert (len(first.changes), first.has_more, len(rest.changes), rest.has_more) == (2, True, 3, False)
    assert [*first.changes, *rest.changes] == list((await page(store)).changes)
    end = await page(store, LATEST)
    assert (end.changes, end.cursor) == ((), rest.cursor)
    assert (await page(store, end.cursor)).cursor == end.cursor
    newest = await store.http.post("/v1/changes/newest", json={"tenants": ["t1", "t2"]})
    assert newest.json() == {"cursors": {"t1": end.cursor, "t2": OLDEST}}


async def some(feed: ChangeFeed, number: int) -> None:
    """Publish that many changes, one after another."""
    for _ in range(number):
        await feed.publish(by_tenant(erasure_changes(ALICE, now())))


async def read(feed: ChangeFeed, after: str = OLDEST) -> ChangePage:
    return await feed.page(StoreChanges(scope=Scope(tenant=ALICE.tenant), after=after, limit=500))


async def test_the_feed_keeps_its_newest_changes_and_refuses_a_cursor_before_a_gap(link: Redis) -> None:
    feed = feed_of(link, most=10)
    await some(feed, 5)
    early, fifth = (await read(feed)).changes[0].id, (await read(feed)).cursor
    await some(feed, 10)
    assert len((await read(feed)).changes) == 10
    assert len((await read(feed, fifth)).changes) == 10
    with pytest.raises(Gone) as refusal:
        await read(feed, early)
    assert refusal.value.code == "cursor_too_old"


async def test_changes_that_are_kept_too_long_are_cut_off_without_a_new_one(link: Redis) -> None:
    feed = feed_of(link, keep_s=0.05)
    await some(feed, 1)
    cursor = (await read(feed, LATEST)).cursor
    while (await read(feed)).changes:
        pass
    assert (await read(feed, cursor)).cursor == cursor
    ms, _, number = cursor.partition("-")
    with pytest.raises(Gone):
        await read(feed, f"{int(ms) - 1}-{number}")


async def test_a_cursor_of_a_feed_that_was_lost_is_refused(link: Redis) -> None:
    feed = feed_of(link)
    await some(feed, 1)
    cursor = (await read(feed)).cursor
    await link.flushdb()  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(Gone):
        await read(feed, cursor)
    assert (await read(feed)).changes == ()
    await some(feed, 1)
    with pytest.raises(Gone):
        await read(feed, f"{int(cursor.partition('-')[0]) - 1}-0")  # before the new feed, whatever the clock says


async def test_what_a_dead_store_noted_is_published_by_another_one_once(link: Redis) -> None:
    dying, living = feed_of(link), feed_of(link, over_ms=0)
    made = by_tenant(erasure_changes(ALICE, now()))
    await dying.note(made)
    assert await dying.publish_noted() == 0
    assert await living.publish_noted() == 1
    assert await living.publish_noted() == 0
    assert len((await read(living)).changes) == 1


async def test_a_published_change_leaves_no_note(link: Redis) -> None:
    feed = feed_of(link, over_ms=0)
    made = by_tenant(erasure_changes(ALICE, now()))
    await feed.publish(made, note=await feed.note(made))
    assert await feed.publish_noted() == 0
    assert len((await read(feed)).changes) == 1


async def test_a_write_is_refused_when_its_changes_cannot_be_noted(settings: Settings) -> None:
    gone = feed_of(connect("redis://127.0.0.1:1/0"))
    with pytest.raises(Unavailable):
        await gone.note(by_tenant(erasure_changes(ALICE, now())))


@pytest.mark.parametrize("after", ["", "yesterday", "1-", "-1-0", "9" * 20 + "-0"])
async def test_a_cursor_of_another_form_is_refused(http: httpx.AsyncClient, after: str) -> None:
    answer = await http.post("/v1/changes", json={"scope": {"tenant": "t1"}, "after": after})
    assert answer.status_code == 422
