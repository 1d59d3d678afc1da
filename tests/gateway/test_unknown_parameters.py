"""What a route does not know is refused by name, on every route of our own, and nothing changes.

The routes come from the router, and each is asked for tenant A's own things with A's own key: without the refusal,
every deletion and every edit would succeed. A new route is swept without a line here.
"""

from typing import Any

import pytest
from fastapi.routing import APIRoute

from gateway.document import needs_of
from gateway.main import build_app
from gateway.settings import GatewaySettings
from memloop_service.incoming import takes_body
from tests.gateway.api_rig import ALICE_KEY, OPERATOR_KEY
from tests.gateway.openapi_document import DOCUMENT
from tests.gateway.running import Answer
from tests.gateway.tenant_rows.all_rows import ATTEMPTS
from tests.gateway.tenant_rows.memory import SAID
from tests.gateway.tenants import World

_PAGES = {"/console", "/console/{path:path}", "/docs"}
ROUTES = {
    f"{method} {route.path}": route
    for route in build_app(GatewaySettings()).routes
    if isinstance(route, APIRoute) and route.path not in _PAGES
    for method in sorted(route.methods)
}
TOLERANT = {name for name, route in ROUTES.items() if any(need.ignores_unknown for need in needs_of(route))}
STRICT = [name for name in ROUTES if name not in TOLERANT]
BODILESS = [name for name in STRICT if not takes_body(ROUTES[name])]
_KEYED = {"POST /v1/long-read", "POST /v1/memory/add", "POST /v1/memory/buffers/flush", "POST /v3/memories/add"}
UNKEYED = [name for name in STRICT if name.startswith(("POST", "PUT", "PATCH")) and name not in _KEYED]
_OTHERS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/models",
    "/v1/messages",
    "/v1/responses",
    "/v1/conversations",
    "/v1/files",
    "/v1/vector_stores",
)
"""What OpenAI and Anthropic have too."""
_NOT_SERVED = ("/v1/exports", "/v1/summary", "/v2/profiles", "/api/v1/orgs", "/api/v1/webhooks", "/v2/entities")
"""What mem0 has and this API answers with 501."""


async def _expect_unchanged(name: str, world: World, owned: dict[str, bytes]) -> None:
    """What a GET changed, the next route of another method finds: all of them come in one run."""
    assert name.startswith("GET ") or await world.what_a_owns() == owned


def _ask_of(name: str) -> tuple[str, object]:
    """A request that the route would grant, but for what it does not know."""
    if name not in ATTEMPTS:
        return ROUTES[name].path_format.format_map(dict.fromkeys(ROUTES[name].param_convertors, "x")), None
    first = ATTEMPTS[name][0]
    return first.path, first.body


async def _sent(world: World, name: str, query: str, body: object = None, **headers: str) -> Answer:
    method = name.split()[0]
    path, usual = _ask_of(name)
    path = path.format_map(world.ids)
    key = OPERATOR_KEY if path.startswith("/v1/admin") else ALICE_KEY
    path += ("&" if "?" in path else "?") + query if query else ""
    return await world.call(key, method, path, usual if body is None else body, **headers)


def _error(answer: Answer) -> tuple[int, str, str]:
    error = answer.json["error"]
    return answer.status, error["code"], error["param"]


def test_only_routes_of_other_apis_ignore_what_they_do_not_know() -> None:
    assert [name for name in TOLERANT if not name.split()[1].startswith(_OTHERS + _NOT_SERVED)] == []
    assert [name for name in STRICT if name.split()[1].startswith(_OTHERS)] == ["POST /v1/files/from-url"]


def test_the_document_has_what_each_route_does_with_unknown_parameters() -> None:
    said = {
        f"{method.upper()} {path}": operation["x-unknown-parameters"]
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    plain = {
        name: f"{name.split()[0]} {route.path_format}" for name, route in ROUTES.items() if route.include_in_schema
    }
    assert said == {plain[name]: "ignored" if name in TOLERANT else "refused" for name in plain}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", STRICT)
async def test_an_unknown_parameter_is_refused_by_name_and_changes_nothing(
    name: str, world: World, owned: dict[str, bytes]
) -> None:
    for query in ("no_such=1", "no_such=", "no_such", "page_=2&no_such=1"):
        status, code, param = _error(await _sent(world, name, query))
        assert (status, code) == (400, "unknown_parameter"), query
        assert param == query.split("=")[0]
    await _expect_unchanged(name, world, owned)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", BODILESS)
async def test_a_body_is_refused_where_none_is_read(name: str, world: World, owned: dict[str, bytes]) -> None:
    bodies: dict[str, object] = {"user_id": {"user_id": "alice", "x": 1}, "filters": {"filters": None}}
    for param, body in [*bodies.items(), ("body", ["x"]), ("body", "x"), ("body", 0)]:
        assert _error(await _sent(world, name, "", body)) == (400, "unknown_parameter", param)
    await _expect_unchanged(name, world, owned)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", [name for name in STRICT if name in ATTEMPTS])
async def test_a_repeated_parameter_is_refused(name: str, world: World, owned: dict[str, bytes]) -> None:
    known = {declared.alias for need in _walk(ROUTES[name].dependant) for declared in need.query_params}
    for one in known - {"org_id", "project_id"}:  # mem0's, whose values are checked first
        status, code, param = _error(await _sent(world, name, f"{one}=1&{one}=2"))
        assert (status, code, param) == (400, "repeated_parameter", one)
    await _expect_unchanged(name, world, owned)


def _walk(dependant: Any) -> Any:
    yield dependant
    for inner in dependant.dependencies:
        yield from _walk(inner)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("method", "path", "param", "meant"),
    [
        ("DELETE", "/v1/memory?user_id=alice&agentId=A", "agentId", "agent_id"),
        ("DELETE", "/v1/memory?user_id=alice&AGENT_ID=A", "AGENT_ID", "agent_id"),
        ("DELETE", "/v1/memory?user_id=alice&agent-id=A", "agent-id", "agent_id"),
        ("DELETE", "/v1/memory?user_id=alice&runid=A", "runid", "run_id"),
        ("DELETE", "/v1/memory?userId=alice", "userId", "user_id"),
        ("PUT", "/v1/admin/memory-policy?userid=z", "userid", "user_id"),
        ("DELETE", "/v1/admin/memory-policy?agentid=A", "agentid", "agent_id"),
        ("GET", "/v1/memory/changes?userId=U", "userId", "user_id"),
        ("DELETE", "/v1/memories/?user_id=alice&agentId=A", "agentId", "agent_id"),
    ],
)
async def test_the_closest_parameter_is_named(method: str, path: str, param: str, meant: str, world: World) -> None:
    answer = await world.call(OPERATOR_KEY if "admin" in path else ALICE_KEY, method, path, None)
    assert _error(answer) == (400, "unknown_parameter", param)
    assert f"Did you mean '{meant}'?" in answer.json["error"]["message"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "query", ["page=2", "offset=1", "after=x", "starting_after=x", "skip=1", "order=asc", "sort=created_at", "before=x"]
)
@pytest.mark.parametrize(
    "path", ["/v1/memory?user_id=alice&", "/v1/memory/events?user_id=alice&", "/v1/memory/buffers?"]
)
async def test_another_products_paging_is_refused(path: str, query: str, world: World) -> None:
    answer = await world.call(ALICE_KEY, "GET", path + query)
    assert _error(answer) == (400, "unknown_parameter", query.split("=")[0])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "query", ["metadata={}", "filters={}", "filters={'metadata':{'a':1}}", "app_id=x", "session_id=x"]
)
async def test_what_a_mem0_deletion_cannot_honour_is_refused(query: str, world: World, owned: dict[str, bytes]) -> None:
    scope = "" if query == "filters={}" else "user_id=alice&"
    answer = await world.call(ALICE_KEY, "DELETE", f"/v1/memories/?{scope}{query}")
    assert answer.status in (400, 422, 501), answer.raw
    assert answer.json["error"]["param"] in (query.split("=")[0], "user_id")
    assert await world.what_a_owns() == owned


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", sorted(name for name in TOLERANT if name.startswith("DELETE") and "/v1/" in name))
async def test_a_dry_run_deletes_nothing_where_there_is_none(name: str, world: World, owned: dict[str, bytes]) -> None:
    if name.split()[1].startswith(_NOT_SERVED):
        return
    answer = await _sent(world, name, "dry_run=true")
    assert answer.status == 200 or _error(answer) == (400, "unknown_parameter", "dry_run")
    assert await world.what_a_owns() == owned


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", UNKEYED)
async def test_an_idempotency_key_is_refused_where_none_is_taken(
    name: str, world: World, owned: dict[str, bytes]
) -> None:
    answer = await _sent(world, name, "", **{"Idempotency-Key": "once"})
    assert answer.status == 400
    assert answer.json["error"]["param"] == "idempotency-key"
    await _expect_unchanged(name, world, owned)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/vector_stores"])
async def test_a_route_of_openai_ignores_an_idempotency_key_that_it_does_not_take(path: str, world: World) -> None:
    made = [await world.call(ALICE_KEY, "POST", path, {}, **{"Idempotency-Key": "once"}) for _ in range(2)]
    assert [answer.status for answer in made] == [200, 200]
    assert made[0].json["id"] != made[1].json["id"]
    for answer in made:
        await world.call(ALICE_KEY, "DELETE", f"{path}/{answer.json['id']}")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/files", "/v1/vector_stores", "/v1/conversations/{conversation}/items"]
)
async def test_a_route_of_openai_ignores_what_it_does_not_know(path: str, world: World) -> None:
    answer = await world.call(ALICE_KEY, "GET", path.format_map(world.ids) + "?no_such=1")
    assert answer.status == 200


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("path", "body", "param", "meant"),
    [
        ("/v1/memory/search", {"query": "tea", "userId": "alice"}, "userId", "user_id"),
        ("/v1/memory/search", {"query": "tea", "user_id": "alice", "topk": 3}, "topk", "top_k"),
        ("/v1/memory/add", SAID | {"agentid": "A"}, "agentid", "agent_id"),
        ("/v1/memory/batch", {"adds": [SAID | {"agentid": "A"}]}, "adds.0.agentid", "agent_id"),
        ("/v1/long-read", {"question": "?", "document": {"txt": "x"}}, "document.txt", "text"),
        (
            "/v1/chat/completions",
            {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "memory": {"userid": "alice"}},
            "memory.userid",
            "user_id",
        ),
        ("/v1/responses", {"model": "m", "input": "Hi", "memory": {"topk": 3}}, "memory.topk", "top_k"),
        (
            "/v1/messages",
            {
                "model": "m",
                "max_tokens": 5,
                "messages": [{"role": "user", "content": "Hi"}],
                "memory": {"userid": "alice"},
            },
            "memory.userid",
            "user_id",
        ),
        ("/v3/memories/search/", {"query": "tea", "filters": {"user_id": "alice"}, "topk": 3}, "topk", "top_k"),
    ],
)
async def test_an_unknown_field_is_refused_by_name(
    path: str, body: object, param: str, meant: str, world: World
) -> None:
    answer = await world.call(ALICE_KEY, "POST", path, body)
    if path == "/v1/messages":
        assert (answer.status, param.encode() in answer.raw, meant.encode() in answer.raw) == (400, True, True)
        return
    assert _error(answer) == (400, "unknown_parameter", param)
    assert f"Did you mean '{meant}'?" in answer.json["error"]["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_tool_refuses_an_unknown_argument_by_name(world: World) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "memory_list", "arguments": {"user_id": "alice", "agentId": "A"}},
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    answer = await world.call(ALICE_KEY, "POST", "/mcp", call, **accepts)
    assert answer.status == 200
    assert b"unknown_parameter" in answer.raw
    assert b"agent_id" in answer.raw
