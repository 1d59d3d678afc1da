"""``/v1/admin`` in the tenant matrix. B asks with a key that manages B, and names ``tenant=a`` in every query."""

from tests.gateway.tenants import Attempt

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/admin/keys": [
        Attempt(
            "/v1/admin/keys",
            {"name": "mine", "scopes": ["admin"]},
            201,
            lambda body: body["tenant"].startswith("b-"),
        ),
        Attempt("/v1/admin/keys", {"name": "mine", "scopes": ["memory:read"]}, 403),
        Attempt("/v1/admin/keys", {"name": "mine", "tenant": "a"}, 403),
    ],
    "GET /v1/admin/keys": [Attempt("/v1/admin/keys", status=403), Attempt("/v1/admin/keys?cursor={key}", status=403)],
    "POST /v1/admin/keys/{key_id}/rotate": [
        Attempt("/v1/admin/keys/{key}/rotate", {}),
        Attempt("/v1/admin/keys/{key}/rotate", {"overlap_s": 60}),
    ],
    "DELETE /v1/admin/keys/{key_id}": [Attempt("/v1/admin/keys/{key}")],
    "GET /v1/admin/queues": [Attempt("/v1/admin/queues", status=403)],
    "GET /v1/admin/rollouts": [Attempt("/v1/admin/rollouts", status=403)],
    "PUT /v1/admin/rollouts": [
        Attempt("/v1/admin/rollouts", {"model": "m", "candidate": "n", "share": 1}, 403),
    ],
    "DELETE /v1/admin/rollouts": [Attempt("/v1/admin/rollouts?model=m", status=403)],
    "GET /v1/admin/usage": [
        Attempt("/v1/admin/usage", status=403),
        Attempt("/v1/admin/usage?by=day", status=403),
    ],
    "GET /v1/admin/dead-letters": [Attempt("/v1/admin/dead-letters", status=403)],
    "POST /v1/admin/dead-letters/{job_id}/requeue": [
        Attempt("/v1/admin/dead-letters/{event}/requeue", {}),
        Attempt("/v1/admin/dead-letters/{waiting_event}/requeue", {}),
        Attempt("/v1/admin/dead-letters/{read}/requeue", {}),
    ],
    "GET /v1/admin/webhook-secret": [Attempt("/v1/admin/webhook-secret", status=403)],
    "GET /v1/admin/trace-settings": [Attempt("/v1/admin/trace-settings", status=403)],
    "PUT /v1/admin/trace-settings": [
        Attempt("/v1/admin/trace-settings", {"enabled": False}, 200, lambda body: body["tenant"].startswith("b-")),
        Attempt("/v1/admin/trace-settings", {"enabled": False, "tenant": "a"}, 403),
    ],
    "GET /v1/admin/memory-policy": [
        Attempt("/v1/admin/memory-policy", status=403),
        Attempt("/v1/admin/memory-policy?user_id=alice", status=403),
    ],
    "PUT /v1/admin/memory-policy": [Attempt("/v1/admin/memory-policy", {}, 403)],
    "DELETE /v1/admin/memory-policy": [Attempt("/v1/admin/memory-policy", status=403)],
    "GET /v1/admin/memory-webhooks": [Attempt("/v1/admin/memory-webhooks", status=403)],
    "POST /v1/admin/memory-webhooks": [Attempt("/v1/admin/memory-webhooks", {"url": "https://example.com/in"}, 403)],
    "DELETE /v1/admin/memory-webhooks/{hook_id}": [Attempt("/v1/admin/memory-webhooks/hook_00", status=403)],
    "GET /v1/admin/traces": [Attempt("/v1/admin/traces", status=403)],
    "GET /v1/admin/audit": [
        Attempt("/v1/admin/audit", status=403),
        Attempt("/v1/admin/audit?kind=denied", status=403),
        Attempt("/v1/admin/audit?kind=unauthenticated", status=403),
    ],
}
