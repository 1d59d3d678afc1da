"""Memories out of one store's namespace and into another's, line by line."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from memloop.wire.memory import Namespace
from memloop.wire.store_requests import ExportPage, Imported, MemoryLine, NumberedLine, StoreExport, StoreImport
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import ALICE, StoreApi, day
from tests.memory_store.conftest import app_over, serving
from tests.memory_store.set_clock import SetClock


async def lines_of(store: StoreApi, **fields: object) -> list[MemoryLine]:
    lines: list[MemoryLine] = []
    cursor: str | None = None
    while True:
        asked = StoreExport.model_validate({"scope": store.namespace, "limit": 2, "cursor": cursor, **fields})
        answer = await store.http.post("/v1/items/export", content=asked.model_dump_json())
        page = ExportPage.model_validate_json(answer.content)
        lines += page.lines
        cursor = page.next_cursor
        if cursor is None:
            return lines


async def take(http: httpx.AsyncClient, lines: list[str], *, tenant: str = "t1") -> Imported:
    numbered = tuple(NumberedLine(number=number, text=text) for number, text in enumerate(lines, start=1))
    answer = await http.post("/v1/items/import", content=StoreImport(tenant=tenant, lines=numbered).model_dump_json())
    assert answer.status_code == 200, answer.text
    return Imported.model_validate_json(answer.content)


async def filled(store: StoreApi) -> None:
    await store.add("City", "Rome", timestamp=day(1), metadata={"a": [1, {"b": None}]})
    await store.add("City", "Oslo", timestamp=day(5))
    await store.add("Pet", "cat", timestamp=day(2))
    await store.add("turn", "hello", kind="RawTurn", timestamp=day(3))
    deleted = await store.add("Car", "red")
    await store.delete(deleted.item.id)


async def test_an_export_has_every_version_but_deleted_ones(store: StoreApi) -> None:
    await filled(store)

    assert sorted(line.item.memory for line in await lines_of(store)) == ["Oslo", "Rome", "cat"]
    assert sorted(line.item.memory for line in await lines_of(store, latest_only=True)) == ["Oslo", "cat"]
    assert len(await lines_of(store, include_raw=True)) == 4


async def test_importing_where_all_is_there_changes_nothing(store: StoreApi) -> None:
    await filled(store)
    lines = [line.model_dump_json() for line in await lines_of(store, include_raw=True)]
    before = await store.page(limit=100, latest_only="false", include_raw="true")

    assert await take(store.http, lines) == Imported(unchanged=4)

    assert await store.page(limit=100, latest_only="false", include_raw="true") == before


async def test_what_was_erased_comes_back_with_its_history(store: StoreApi) -> None:
    await filled(store)
    lines = [line.model_dump_json() for line in await lines_of(store, include_raw=True)]
    await store.erase()

    first, second = await take(store.http, lines), await take(store.http, lines)

    assert (first, second) == (Imported(imported=4), Imported(unchanged=4))
    assert await store.found("city") == ["Oslo", "cat"]
    assert await store.found("city", as_of=day(3), filters={"key": "City"}) == ["Rome"]
    [oslo] = [hit.item for hit in await store.search("Oslo", filters={"key": "City"})]
    rome, live = await store.history(oslo.id)
    assert (live.supersedes, rome.metadata, live.changes[0].rule) == (rome.id, {"a": [1, {"b": None}]}, "imported")
    assert (await store.add("City", "Rome", timestamp=day(9))).outcome == "superseded"


async def test_a_file_with_another_users_name_becomes_a_copy_for_that_user(store: StoreApi) -> None:
    await filled(store)
    before = await store.page(limit=100, latest_only="false", include_raw="true")
    lines = [line.model_dump_json().replace('"alice"', '"bob"') for line in await lines_of(store)]
    bob = store.of(user_id="bob")

    first, second = await take(store.http, lines), await take(store.http, lines)

    assert (first, second) == (Imported(imported=3), Imported(unchanged=3))
    assert sorted(await bob.found("city")) == ["Oslo", "cat"]
    assert await store.page(limit=100, latest_only="false", include_raw="true") == before
    [oslo] = [hit.item for hit in await bob.search("Oslo", filters={"key": "City"})]
    assert [past.memory for past in await bob.history(oslo.id)] == ["Rome", "Oslo"]


async def test_a_copy_of_an_edited_text_has_its_former_states(store: StoreApi) -> None:
    item = (await store.add("I like tea", "I like tea")).item
    for drink in ("coffee", "milk"):
        await store.patch(item.id, {"memory": f"I like {drink}"})
    lines = [
        line.model_copy(update={"item": line.item.model_copy(update={"user_id": "bo"})})
        for line in await lines_of(store)
    ]

    moved = await take(store.http, [line.model_dump_json() for line in lines])

    bo = store.of(user_id="bo")
    [live] = (await bo.page()).items
    assert moved.imported == 3
    assert [past.memory for past in await bo.history(live.id)] == ["I like tea", "I like coffee", "I like milk"]
    assert (await bo.add("I like tea", "I like tea")).outcome == "inserted"


async def test_a_deleted_memory_comes_back_under_its_id_from_a_file(store: StoreApi) -> None:
    await filled(store)
    lines = [line.model_dump_json() for line in await lines_of(store, include_raw=True)]
    before = await store.page(limit=100, include_raw="true")
    for item in (await store.page(limit=100, latest_only="false", include_raw="true")).items:
        await store.delete(item.id)

    first, second = await take(store.http, lines), await take(store.http, lines)

    assert (first, second) == (Imported(imported=4), Imported(unchanged=4))
    after = await store.page(limit=100, include_raw="true")
    assert [(item.id, item.memory) for item in after.items] == [(item.id, item.memory) for item in before.items]
    assert await store.found("city", as_of=day(3), filters={"key": "City"}) == ["Rome"]


async def test_a_deleted_memory_that_has_expired_since_is_reported_by_its_line(
    settings: Settings, edge_folder: Path
) -> None:
    clock = SetClock()
    async with serving(app_over(QdrantEdge(edge_folder, flush_s=60), settings, clock=clock)) as http:
        store = StoreApi(http)
        code = (await store.add("Code", "1234", expires_at=clock.time + timedelta(days=1))).item
        lines = [line.model_dump_json() for line in await lines_of(store)]
        await store.delete(code.id)
        clock.pass_days(2)

        result = await take(http, lines)

    assert (result.imported, result.failed) == (0, 1)
    assert "deleted" in result.errors[0].message


async def test_another_tenants_file_becomes_the_importers_own(store: StoreApi) -> None:
    await filled(store)
    before = await store.page(limit=100, latest_only="false", include_raw="true")
    lines = [line.model_dump_json() for line in await lines_of(store)]
    aimed = [line.replace("Oslo", "Stolen") for line in lines]
    other = store.of(tenant="t2")

    assert (await take(store.http, aimed, tenant="t2")).imported == 3

    assert sorted(await other.found("city")) == ["Stolen", "cat"]
    assert await store.page(limit=100, latest_only="false", include_raw="true") == before
    assert {item.id for item in (await other.page(limit=100)).items}.isdisjoint({item.id for item in before.items})


async def test_a_live_version_of_a_file_ends_where_a_later_one_begins(store: StoreApi) -> None:
    await store.add("City", "Rome", timestamp=day(1))
    lines = [line.model_dump_json() for line in await lines_of(store)]
    await store.erase()
    await store.add("City", "Oslo", timestamp=day(5))

    await take(store.http, lines)

    assert await store.found("city") == ["Oslo"]
    assert await store.found("city", as_of=day(2)) == ["Rome"]


def _line(**fields: object) -> str:
    item: dict[str, Any] = {
        "id": "x",
        "memory": "m",
        "key": "k",
        "memory_type": "UserMemory",
        "user_id": "alice",
        "valid_from": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "hash": "lies",
    }
    return json.dumps({"item": item | fields, "confirmed_at": "2026-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        _line(tenant="t2"),
        _line(user_id=""),
        _line(memory=""),
        _line(memory="x" * 40_000),
        _line(status="deleted"),
        _line(version=0),
        _line(valid_from="2026-01-01T00:00:00"),
        _line(valid_to="2025-01-01T00:00:00Z"),
        _line(metadata={"big": 2**70}),
    ],
    ids=[
        "nothing",
        "no JSON",
        "no object",
        "no fields",
        "a tenant",
        "no user",
        "no text",
        "long",
        "deleted",
        "no version",
        "no zone",
        "ends before it begins",
        "a big number",
    ],
)
async def test_a_bad_line_is_reported_by_number_and_loses_no_other(http: httpx.AsyncClient, bad: str) -> None:
    result = await take(http, [_line(id="a"), bad, _line(id="b", key="other")])

    assert (result.imported, result.failed) == (2, 1)
    assert result.errors[0].line == 2


async def test_an_imported_hash_is_computed_again(store: StoreApi) -> None:
    await take(store.http, [_line()])

    assert (await store.add("k", "m", kind="UserMemory")).outcome == "touched"


async def test_a_line_keeps_to_its_user(store: StoreApi) -> None:
    await take(store.http, [_line(user_id="bob")])

    assert await store.found("m") == []
    assert await StoreApi(store.http, Namespace(tenant=ALICE.tenant, user_id="bob")).found("m") == ["m"]
