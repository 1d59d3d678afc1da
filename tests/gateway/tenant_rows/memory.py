"""``/v1/memory`` in the tenant matrix."""

from tests.gateway.tenants import Attempt

SAID = {"messages": [{"role": "user", "content": "Mine."}], "user_id": "alice"}
NO_PAGE: dict[str, object] = {"object": "list", "data": [], "has_more": False}
NOTHING_FOUND: dict[str, object] = {
    "results": [],
    "pending": [],
    "pending_complete": True,
    "degraded": False,
    **NO_PAGE,
}
_AIMED = {
    "item": {
        "id": "{item}",
        "memory": "B was here",
        "key": "tea",
        "memory_type": "UserMemory",
        "user_id": "alice",
        "valid_from": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "hash": "",
    },
    "confirmed_at": "2026-01-01T00:00:00Z",
}
"""A line of a file that names an item of A."""

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/memory/add": [
        Attempt("/v1/memory/add", SAID, 202, lambda body: body["status"] == "queued"),
        Attempt("/v1/memory/add", SAID | {"tenant": "a"}, 400),
    ],
    "POST /v1/memory/batch": [
        Attempt("/v1/memory/batch", {"adds": [SAID]}, 200, lambda b: len(b["results"][0]["memories"]) == 1),
        Attempt("/v1/memory/batch", {"adds": [SAID | {"tenant": "a"}]}, 400),
    ],
    "POST /v1/memory/search": [
        Attempt("/v1/memory/search", {"query": "tea at five", "user_id": "alice"}, 200, lambda b: b == NOTHING_FOUND),
        Attempt(
            "/v1/memory/search",
            {
                "query": "tea",
                "user_id": "alice",
                "include_raw": True,
                "latest_only": False,
                "filters": {"OR": [{"tenant": {"eq": "a"}}, {"user_id": "*"}]},
            },
            200,
            lambda body: body == NOTHING_FOUND | {"pending_complete": False},
        ),
        Attempt("/v1/memory/search", {"query": "tea", "user_id": "alice", "tenant": "a"}, 400),
    ],
    "GET /v1/memory/events": [
        Attempt("/v1/memory/events?user_id=alice", None, 200, lambda body: body == {"events": [], **NO_PAGE}),
        Attempt("/v1/memory/events?user_id=a:alice", None, 200, lambda body: body == {"events": [], **NO_PAGE}),
    ],
    "GET /v1/memory/events/{event_id}": [
        Attempt("/v1/memory/events/{event}"),
        Attempt("/v1/memory/events/{waiting_event}"),
        Attempt("/v1/memory/events/{read}"),
    ],
    "POST /v1/memory/events/{event_id}/retry": [
        Attempt("/v1/memory/events/{event}/retry", {}),
        Attempt("/v1/memory/events/{waiting_event}/retry", {}),
    ],
    "POST /v1/memory/events/{event_id}/redecide": [
        Attempt("/v1/memory/events/{event}/redecide", {}),
        Attempt("/v1/memory/events/{waiting_event}/redecide", {}),
    ],
    "POST /v1/memory/redecide": [
        Attempt("/v1/memory/redecide", {}, 202, lambda body: body == {"events": [], "has_more": False}),
        Attempt("/v1/memory/redecide", {"user_id": "alice"}, 202, lambda body: body["events"] == []),
        Attempt("/v1/memory/redecide", {"user_id": "alice", "tenant": "a"}, 400),
    ],
    "GET /v1/memory/buffers": [
        Attempt(f"/v1/memory/buffers{query}", None, 200, lambda body: body == {"buffers": [], **NO_PAGE})
        for query in ("", "?user_id=alice")
    ],
    "POST /v1/memory/buffers/flush": [
        Attempt("/v1/memory/buffers/flush", {"user_id": "alice"}, 202, lambda body: body == {"events": []})
    ],
    "POST /v1/memory/export": [
        Attempt("/v1/memory/export", {"user_id": "alice"}, 200, lambda body: body == {"exported": 0}),
        Attempt("/v1/memory/export", {"user_id": "alice", "tenant": "a"}, 400),
    ],
    "POST /v1/memory/import": [
        Attempt("/v1/memory/import", _AIMED, 200, lambda body: (body["imported"], body["failed"]) == (1, 0))
    ],
    "POST /v1/memory/redaction/check": [
        Attempt(
            "/v1/memory/redaction/check",
            {"texts": ["a@b.org"], "user_id": "alice"},
            200,
            lambda body: not body["counts"],
        ),
        Attempt("/v1/memory/redaction/check", {"texts": ["x"], "user_id": "alice", "tenant": "a"}, 400),
    ],
    "GET /v1/memory/policy": [
        Attempt("/v1/memory/policy?user_id=alice", None, 200, lambda body: body["policy"] is None)
    ],
    "PUT /v1/memory/policy": [
        Attempt("/v1/memory/policy?user_id=alice", {"never": ["tea"]}, 200, lambda body: body["user_id"] == "alice")
    ],
    "DELETE /v1/memory/policy": [
        Attempt("/v1/memory/policy?user_id=alice", None, 200, lambda body: body["policy"] is None)
    ],
    "POST /v1/memory/policy/check": [
        Attempt(
            "/v1/memory/policy/check",
            {"texts": ["Tea."], "user_id": "alice"},
            200,
            lambda body: body["texts"][0]["kept"] == "Tea.",
        )
    ],
    "GET /v1/memory/changes": [
        Attempt("/v1/memory/changes", None, 200, lambda body: body["changes"] == []),
        Attempt("/v1/memory/changes?user_id=alice", None, 200, lambda body: body["changes"] == []),
    ],
    "GET /v1/memory/profile": [
        Attempt("/v1/memory/profile?user_id=alice", None, 200, lambda body: body["categories"] == [])
    ],
    "GET /v1/memory": [
        Attempt("/v1/memory?user_id=alice", None, 200, lambda body: body["items"] == []),
        Attempt("/v1/memory?user_id=alice&cursor={cursor}", None, 200, lambda body: body["items"] == []),
    ],
    "DELETE /v1/memory": [Attempt("/v1/memory?user_id=alice", None, 200, lambda body: not any(body.values()))],
    "GET /v1/memory/{item_id}": [Attempt("/v1/memory/{item}")],
    "PATCH /v1/memory/{item_id}": [Attempt("/v1/memory/{item}", {"memory": "B was here"})],
    "DELETE /v1/memory/{item_id}": [Attempt("/v1/memory/{item}")],
    "POST /v1/memory/{item_id}/recover": [Attempt("/v1/memory/{item}/recover")],
    "POST /v1/memory/{item_id}/feedback": [Attempt("/v1/memory/{item}/feedback", {"feedback": "wrong"})],
    "GET /v1/memory/audit": [
        Attempt("/v1/memory/audit?user_id=alice", None, 200, lambda b: (b["memories"], b["raw_turns"]) == (0, 0)),
        Attempt("/v1/memory/audit?user_id=a:alice", None, 200, lambda b: b["memories"] == 0),
    ],
    "GET /v1/memory/{item_id}/history": [Attempt("/v1/memory/{item}/history")],
}
