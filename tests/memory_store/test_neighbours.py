"""Live memories near drafts that are not stored yet."""

from memloop.wire.memory import (
    MemoryDraft,
    MemoryItem,
    Namespace,
)
from memloop.wire.store_requests import Neighbours, StoreNeighbours
from tests.memory_store.api import ALICE, StoreApi

CATS = "Tom has two lovely grey cats at home"


async def near(
    store: StoreApi, *values: str, key: str = "pets of Tom", of: Namespace = ALICE, at_least: float = 0.5
) -> list[list[str]]:
    """The texts near each value."""
    drafts = tuple(MemoryDraft(key=key, value=value) for value in values)
    asked = StoreNeighbours(namespace=of, drafts=drafts, at_least=at_least)
    response = await store.http.post("/v1/items/neighbours", content=asked.model_dump_json())
    assert response.status_code == 200, response.text
    return [_texts(items) for items in Neighbours.model_validate_json(response.content).neighbours]


def _texts(items: tuple[MemoryItem, ...]) -> list[str]:
    return [item.memory for item in items]


async def test_a_memory_under_another_key_and_type_is_near(store: StoreApi) -> None:
    await store.add("animals", CATS, kind="UserMemory")
    await store.add("home", "Nothing alike whatsoever")

    assert await near(store, "Tom has three lovely grey cats at home", "Completely different words") == [[CATS], []]


async def test_a_draft_whose_key_is_stored_has_no_neighbours(store: StoreApi) -> None:
    await store.add("pets of Tom", "Tom has one lovely grey cat at home")
    await store.add("animals", CATS)

    assert await near(store, CATS) == [[]]


async def test_turns_and_deleted_memories_are_not_near(store: StoreApi) -> None:
    await store.add("turn", CATS, kind="RawTurn")
    await store.add("evt_1:0:0", CATS, kind="KeptTurn")
    deleted = await store.add("animals", CATS)
    response = await store.http.delete(f"/v1/items/{deleted.item.id}", headers=store.tenant)
    assert response.status_code == 204

    assert await near(store, CATS) == [[]]


async def test_other_namespaces_are_not_near(store: StoreApi) -> None:
    await store.of(agent_id="a").add("animals", CATS)
    await store.of(user_id="bob").add("animals", CATS)
    await store.of(tenant="t2").add("animals", CATS)

    assert await near(store, CATS) == [[]]
    assert await near(store, CATS, of=Namespace(tenant="t1", user_id="alice", agent_id="a")) == [[CATS]]


async def test_a_superseded_version_is_not_near(store: StoreApi) -> None:
    await store.add("animals", CATS)
    await store.add("animals", "He gave them all away")

    assert await near(store, CATS, at_least=0.9) == [[]]
