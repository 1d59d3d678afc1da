"""The routes of Anthropic's API in the tenant matrix."""

from tests.gateway.tenants import Attempt

_ASKED = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "When is tea?"}]}
_NAMED: tuple[dict[str, object], ...] = (
    {"memory": {"user_id": "alice"}},
    {"memory": {}, "metadata": {"user_id": "alice"}},
    {},
)

SAME_FOR_ALL = {"POST /v1/messages/count_tokens": "counts what the request holds"}

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/messages": [
        Attempt("/v1/messages", _ASKED | named, 200, lambda body: body["memory"]["retrieved"] == []) for named in _NAMED
    ],
}
