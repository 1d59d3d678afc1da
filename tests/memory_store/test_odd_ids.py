"""Two namespaces are two, whatever characters their ids have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.fields import joined
from memloop.wire.memory import Buffer, Namespace, Source
from memloop_state.steps import digest
from memory_store.items.identity import chain_id
from tests.memory_store.api import StoreApi, day

PAIRS = [
    (("a", "b\x1fc"), ("a\x1fb", "c")),
    (("a", None), ("a", "\0")),
    (("a\x1f=b", None), ("a", "b\x1f")),
    ((None, "a"), ("\0", "a")),
    (("a\0", "b"), ("a", "\0b")),
]
"""Pairs of an agent and a run, of one user."""


@pytest.fixture(params=PAIRS, ids=["separator", "no run", "end", "no agent", "nul"])
def two(request: pytest.FixtureRequest, store: StoreApi) -> tuple[StoreApi, StoreApi]:
    """The store for two namespaces of one user."""
    one, other = request.param
    return store.of(agent_id=one[0], run_id=one[1]), store.of(agent_id=other[0], run_id=other[1])


async def test_a_fact_of_one_namespace_changes_none_of_the_other(two: tuple[StoreApi, StoreApi]) -> None:
    one, other = two
    first = await one.add("City", "Rome", timestamp=day(1))

    written = await other.add("City", "Oslo", timestamp=day(2))

    assert written.outcome == "inserted"
    assert [version.memory for version in await one.history(first.item.id)] == ["Rome"]


async def test_a_turn_of_one_namespace_is_not_taken_for_the_others(two: tuple[StoreApi, StoreApi]) -> None:
    ids = [(await each.add("turn", "hello", kind="RawTurn", event_id="e1")).item.id for each in two]

    assert ids[0] != ids[1]


async def test_the_buffer_of_one_namespace_replaces_none_of_the_other(two: tuple[StoreApi, StoreApi]) -> None:
    for each in two:
        kept = Buffer(namespace=each.namespace, turns=(Source(role="user", content="hm"),))
        await each.http.put("/v1/buffers", content=kept.model_dump_json())

    listed = await two[0].http.get("/v1/buffers", params={"tenant": "t1", "user_id": "alice"})

    assert len(listed.json()["buffers"]) == 2


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_an_erasure_names_one_namespace(one: tuple[str, str | None], other: tuple[str, str | None]) -> None:
    erased, kept = (Namespace(tenant="t", user_id="u", agent_id=ids[0], run_id=ids[1]) for ids in (one, other))

    assert erased.scopes()[-1] != kept.scopes()[-1]


def test_a_namespace_of_plain_ids_keeps_the_names_of_stored_data() -> None:
    space = Namespace(tenant="t", user_id="u", agent_id="a", run_id="r")

    assert space.scopes()[-1] == "3981b93e184d91ee5da8417a2fdab1a1"
    assert digest("t", "u") == "5c646625fe1676eaeaf01636c27058fc"
    assert chain_id(space, "LongTermMemory", "City", "Rome") == "87b001ab-bd53-5995-83a6-e30f9b119272"


@given(st.lists(st.none() | st.text("\0\x1f01a=", max_size=4), max_size=4).map(tuple))
def test_joined_parts_can_be_told_apart(parts: tuple[str | None, ...]) -> None:
    separated = joined(*parts).split("\x1f") if parts else []

    assert tuple(None if part == "\0" else _plain(part) for part in separated) == parts


def _plain(part: str) -> str:
    return part.replace("\x001", "\x1f").replace("\x000", "\0")
