"""The chat route in the tenant matrix."""

from tests.gateway.tenants import Attempt

_CHAT = {"model": "m", "messages": [{"role": "user", "content": "When is tea?"}]}

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/chat/completions": [
        Attempt("/v1/chat/completions", _CHAT | named, 200, lambda body: body["memory"]["retrieved"] == [])
        for named in ({"memory": {"user_id": "alice"}}, {"user": "alice"}, {"metadata": {"user_id": "alice"}}, {})
    ],
}
