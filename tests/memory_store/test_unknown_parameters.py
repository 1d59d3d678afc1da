"""The store refuses what a route does not know by name, on every route, and nothing changes."""

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from memloop_service.incoming import takes_body
from memory_store.settings import Settings
from memory_store.vectors.live import LiveCollection
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over

OWNER = {"tenant": "t1", "user_id": "alice"}


@pytest.fixture
def routes(vectors_of_http: LiveCollection, settings: Settings) -> list[APIRoute]:
    """Every route of the store."""
    return [route for route in app_over(vectors_of_http, settings).routes if isinstance(route, APIRoute)]


def _query_of(route: APIRoute) -> set[str]:
    declared = [field.field_info.annotation for field in route.dependant.query_params]
    models = [kind.model_fields for kind in declared if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return {field.alias for field in route.dependant.query_params} | {name for model in models for name in model}


async def _refusals(http: httpx.AsyncClient, route: APIRoute, path: str, body: object) -> None:
    for method in route.methods:
        answer = await http.request(method, path, json=body, headers={"x-memloop-tenant": "t1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "unknown_parameter", "nosuch"), path


async def test_what_a_route_does_not_know_is_refused_and_changes_nothing(
    routes: list[APIRoute], store: StoreApi
) -> None:
    item = (await store.add("City", "Rome")).item
    for route in routes:
        path = route.path_format.format_map({"item_id": item.id, "name": "x"})
        usual = "&".join(f"{name}={OWNER[name]}" for name in _query_of(route) & OWNER.keys())
        await _refusals(store.http, route, f"{path}?{usual}&nosuch=1", None)
        if not takes_body(route):
            await _refusals(store.http, route, path, {"nosuch": 1})

    assert (await store.item(item.id)) == item
    assert len((await store.page()).items) == 1


@pytest.mark.parametrize(
    ("path", "body", "param", "meant"),
    [
        (
            "/v1/items/search",
            {"namespace": {"tenant": "t1", "userid": "u"}, "query": "x"},
            "namespace.userid",
            "user_id",
        ),
        ("/v1/items/search", {"namespace": {"tenant": "t1"}, "query": "x", "topK": 1}, "topK", "top_k"),
        ("/v1/items/export", {"scope": {"tenant": "t1", "agentId": "a"}}, "scope.agentId", "agent_id"),
    ],
)
async def test_an_unknown_field_is_refused_by_name(
    path: str, body: object, param: str, meant: str, http: httpx.AsyncClient
) -> None:
    answer = await http.post(path, json=body)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "unknown_parameter", param)
    assert f"Did you mean '{meant}'?" in error["message"]


async def test_a_misspelt_erasure_erases_nothing(store: StoreApi) -> None:
    await store.add("City", "Rome")

    answer = await store.http.delete("/v1/namespaces", params={"tenant": "t1", "user_id": "alice", "agentId": "A"})

    assert answer.status_code == 400
    assert "Did you mean 'agent_id'?" in answer.json()["error"]["message"]
    assert len((await store.page()).items) == 1
