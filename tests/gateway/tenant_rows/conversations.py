"""``/v1/conversations`` in the tenant matrix."""

from tests.gateway.tenants import Attempt

_ONE = "/v1/conversations/{conversation}"
_ITEM = _ONE + "/items/{conversation_item}"
_SAID: dict[str, object] = {"items": [{"role": "user", "content": "Mine."}]}

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/conversations": [
        Attempt(
            "/v1/conversations",
            _SAID | {"metadata": {"user_id": "alice"}},
            200,
            lambda body: body["metadata"] == {"user_id": "alice"},
        )
    ],
    "GET /v1/conversations/{conversation_id}": [Attempt(_ONE), Attempt("/v1/conversations/{response}")],
    "POST /v1/conversations/{conversation_id}": [Attempt(_ONE, {"metadata": {"mine": "now"}})],
    "DELETE /v1/conversations/{conversation_id}": [Attempt(_ONE)],
    "GET /v1/conversations/{conversation_id}/items": [Attempt(_ONE + "/items")],
    "POST /v1/conversations/{conversation_id}/items": [Attempt(_ONE + "/items", _SAID)],
    "GET /v1/conversations/{conversation_id}/items/{item_id}": [Attempt(_ITEM)],
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": [Attempt(_ITEM)],
}
