"""What is too large or out of range is refused with the field's name, and never reaches the vectors."""

import json
from typing import Any

import httpx
import pytest

from memloop.wire.fields import MAX_METADATA_BYTES, MAX_METADATA_DEPTH, MAX_METADATA_PATH_CHARS, MAX_METADATA_VALUES
from memloop.wire.memory import MAX_BATCH_STATEMENTS

_ALICE = {"tenant": "acme", "user_id": "alice"}
_EDGES = ["0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59-01:00", "0999-12-31T23:59:59Z"]


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"leaf": 1}
    for _ in range(depth - 1):
        inner = {"k": inner}
    return inner


TOO_MUCH = [
    pytest.param({"a": {f"k{leaf}": True for leaf in range(MAX_METADATA_VALUES)}}, id="values"),
    pytest.param({"a": [[0] * 40] * 40}, id="values in lists"),
    pytest.param({"k" * (MAX_METADATA_PATH_CHARS + 1): 1}, id="a long key"),
    pytest.param({"k" * 200: {"l" * 60: 1}}, id="long keys"),
    pytest.param(nested(MAX_METADATA_DEPTH + 1), id="depth"),
    pytest.param({"text": "x" * MAX_METADATA_BYTES}, id="bytes"),
    pytest.param({"k" * 200: {f"{leaf:050}": "" for leaf in range(500)}}, id="bytes of paths"),
]


def add(**fields: Any) -> dict[str, Any]:
    return {"namespace": _ALICE, "drafts": [{"key": "City", "value": "Rome"}], **fields}


def refused_for(response: httpx.Response, param: str) -> bool:
    return response.status_code == 422 and response.json()["error"]["param"] == param


@pytest.mark.parametrize("metadata", TOO_MUCH)
async def test_too_much_metadata_is_refused(http: httpx.AsyncClient, metadata: dict[str, Any]) -> None:
    assert refused_for(await http.post("/v1/items", json=add(metadata=metadata)), "metadata")


async def test_metadata_at_its_limits_is_kept(http: httpx.AsyncClient) -> None:
    metadata = {"k" * MAX_METADATA_PATH_CHARS: "", "deep": nested(MAX_METADATA_DEPTH - 1)}
    metadata |= {f"{leaf}": True for leaf in range(MAX_METADATA_VALUES - 10)}

    added = await http.post("/v1/items", json=add(metadata=metadata))

    assert added.status_code == 200
    assert added.json()["results"][0]["item"]["metadata"] == metadata


@pytest.mark.parametrize("moment", _EDGES)
async def test_a_time_at_the_edge_of_the_calendar_is_refused(http: httpx.AsyncClient, moment: str) -> None:
    search = {"namespace": _ALICE, "query": "city", "as_of": moment}
    page = {**_ALICE, "as_of": moment}

    assert refused_for(await http.post("/v1/items", json=add(timestamp=moment)), "timestamp")
    assert refused_for(await http.post("/v1/items", json=add(expires_at=moment)), "expires_at")
    assert refused_for(await http.post("/v1/items/search", json=search), "as_of")
    assert refused_for(await http.get("/v1/items", params=page), "as_of")


@pytest.mark.parametrize("moment", _EDGES)
async def test_a_filter_by_such_a_time_is_refused(http: httpx.AsyncClient, moment: str) -> None:
    search = {"namespace": _ALICE, "query": "city", "filters": {"created_at": {"gte": moment}}}

    assert refused_for(await http.post("/v1/items/search", json=search), "filters")


async def test_a_filter_of_many_empty_objects_is_refused(http: httpx.AsyncClient) -> None:
    empty: dict[str, Any] = {}
    search = {"namespace": _ALICE, "query": "city", "filters": {"OR": [empty] * 1000}}

    assert refused_for(await http.post("/v1/items/search", json=search), "filters")


async def test_a_batch_has_a_most_of_drafts(http: httpx.AsyncClient) -> None:
    full = add(drafts=[{"key": f"k{at}", "value": "v"} for at in range(100)])
    adds = [full] * (MAX_BATCH_STATEMENTS // 100) + [add()]

    assert refused_for(await http.post("/v1/items/batch", json={"adds": adds}), "adds")


@pytest.mark.parametrize(
    "changes",
    [{"valid_from": _EDGES[0]}, {"expires_at": _EDGES[2]}, {"metadata": {"text": "x" * MAX_METADATA_BYTES}}],
    ids=["valid_from", "expires_at", "metadata"],
)
async def test_a_line_beyond_the_limits_is_not_imported(http: httpx.AsyncClient, changes: dict[str, Any]) -> None:
    item = (await http.post("/v1/items", json=add())).json()["results"][0]["item"]
    line = {"item": {**item, "user_id": "bob", **changes}, "confirmed_at": item["valid_from"]}
    body = {"tenant": "acme", "lines": [{"number": 1, "text": json.dumps(line)}]}

    imported = (await http.post("/v1/items/import", json=body)).json()

    assert (imported["imported"], imported["failed"]) == (0, 1)
