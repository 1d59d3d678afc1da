"""The mem0 drop-in in the tenant matrix; ``tests/gateway/mem0_client`` does the same with the real client."""

from functools import partial
from typing import Any

from tests.gateway.tenants import Attempt


def _refused(body: Any) -> bool:
    return set(body) == {"error", "detail"}


def _empty(body: Any) -> bool:
    return body["results"] == body.get("pending", []) == [] and body.get("count", 0) == 0


def _message(body: Any) -> bool:
    return set(body) == {"message"}


_Refused = partial(Attempt, shows=_refused)
_FILTERS = (
    {"user_id": "alice"},
    {"user_id": "*"},
    {"OR": [{"user_id": "alice"}, {"NOT": [{"user_id": "nobody"}]}, {"tenant": {"eq": "a"}}]},
)
_SAID = {"messages": [{"role": "user", "content": "Mine."}], "user_id": "alice"}

SAME_FOR_ALL = {"GET /v1/ping": "the caller's own tenant"} | {
    f"{method} {path}": "not served"
    for path, methods in {
        "/v1/exports": ("POST",),
        "/v1/exports/get": ("POST",),
        "/v1/summary": ("POST",),
        "/v2/entities/{kind}/{name}/profile": ("GET",),
        "/v2/profiles/{path:path}": ("GET", "POST"),
        "/api/v1/orgs/{path:path}": ("GET", "POST", "PUT", "PATCH", "DELETE"),
        "/api/v1/webhooks/{path:path}": ("GET", "POST", "PUT", "DELETE"),
    }.items()
    for method in methods
}

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v3/memories/add": [
        Attempt("/v3/memories/add", _SAID, 200, lambda body: body["status"] == "PENDING"),
        _Refused("/v3/memories/add", _SAID | {"tenant": "a"}, 400),
    ],
    "POST /v3/memories/search": [
        Attempt("/v3/memories/search", {"query": "tea at five", "filters": filters, "latest_only": False}, 200, _empty)
        for filters in _FILTERS
    ],
    "POST /v3/memories": [Attempt("/v3/memories", {"filters": filters}, 200, _empty) for filters in _FILTERS],
    "GET /v1/memories/{memory_id}": [_Refused("/v1/memories/{item}")],
    "PUT /v1/memories/{memory_id}": [_Refused("/v1/memories/{item}", {"text": "B was here"})],
    "DELETE /v1/memories/{memory_id}": [
        _Refused("/v1/memories/{item}"),
        _Refused("/v1/memories/{item}?delete_linked=true"),
    ],
    "GET /v1/memories/{memory_id}/history": [_Refused("/v1/memories/{item}/history")],
    "PUT /v1/batch": [_Refused("/v1/batch", {"memories": [{"memory_id": "{item}", "text": "B was here"}]})],
    "DELETE /v1/batch": [_Refused("/v1/batch", {"memories": [{"memory_id": "{item}"}]})],
    "POST /v1/feedback": [_Refused("/v1/feedback", {"memory_id": "{item}", "feedback": "VERY_NEGATIVE"})],
    "GET /v1/event/{event_id}": [_Refused("/v1/event/{event}"), _Refused("/v1/event/{waiting_event}")],
    "GET /v1/events": [Attempt("/v1/events?user_id=alice", None, 200, _empty)],
    "GET /v1/entities": [Attempt("/v1/entities", None, 200, _empty)],
    "DELETE /v1/memories": [
        Attempt("/v1/memories?user_id=alice", None, 200, _message),
        Attempt("/v1/memories?user_id=*", None, 200, _message),
    ],
    "DELETE /v2/entities/{kind}/{name:path}": [Attempt("/v2/entities/user/alice", None, 200, _message)],
}
