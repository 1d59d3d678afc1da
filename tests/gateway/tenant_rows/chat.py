"""The chat route in the tenant matrix."""

from tests.gateway.tenants import Attempt

_CHAT = {"model": "m", "messages": [{"role": "user", "content": "When is tea?"}]}
_NAMED: tuple[dict[str, object], ...] = (
    {"memory": {"user_id": "alice"}},
    {"memory": {}, "user": "alice"},
    {"memory": {}, "metadata": {"user_id": "alice"}},
    {},
)

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/chat/completions": [
        Attempt("/v1/chat/completions", _CHAT | named, 200, lambda body: body["memory"]["retrieved"] == [])
        for named in _NAMED
    ],
}
