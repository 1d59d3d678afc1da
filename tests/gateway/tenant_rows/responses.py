"""``/v1/responses`` in the tenant matrix."""

from tests.gateway.tenants import Attempt

_ASKED: dict[str, object] = {"model": "m", "input": "When is tea?"}
_SEARCH: dict[str, object] = {"type": "file_search", "vector_store_ids": ["{vector_store}"]}
_AS_ALICE: list[dict[str, object]] = [{"memory": {"user_id": "alice"}}, {"memory": {}, "user": "alice"}]
_OF_BACKGROUND = [
    Attempt("/v1/responses/{waiting_response}"),
    Attempt("/v1/responses/{waiting_response}?stream=true"),
    Attempt("/v1/responses/{waiting_response}?stream=true&starting_after=0"),
]

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/responses": [
        Attempt("/v1/responses", _ASKED | {"previous_response_id": "{response}"}, status=400),
        Attempt(
            "/v1/responses", _ASKED | {"previous_response_id": "{response}", "store": False, "stream": True}, status=400
        ),
        Attempt("/v1/responses", _ASKED | {"conversation": "{conversation}"}),
        Attempt("/v1/responses", _ASKED | {"conversation": {"id": "{conversation}"}, "store": False, "stream": True}),
        Attempt("/v1/responses", _ASKED | {"tools": [_SEARCH]}),
        Attempt("/v1/responses", _ASKED | {"tools": [_SEARCH], "background": True}),
        Attempt("/v1/responses", _ASKED | {"previous_response_id": "{response}", "background": True}, status=400),
        Attempt("/v1/responses", _ASKED | {"conversation": "{conversation}", "background": True}),
        *(
            Attempt("/v1/responses", _ASKED | named, 200, lambda body: body["memory"]["retrieved"] == [])
            for named in _AS_ALICE
        ),
    ],
    "POST /v1/responses/input_tokens": [
        Attempt("/v1/responses/input_tokens", _ASKED | {"previous_response_id": "{response}"}, status=400)
    ],
    "GET /v1/responses/{response_id}": [
        Attempt("/v1/responses/{response}"),
        Attempt("/v1/responses/{read}"),
        *_OF_BACKGROUND,
    ],
    "DELETE /v1/responses/{response_id}": [
        Attempt("/v1/responses/{response}"),
        Attempt("/v1/responses/{waiting_response}"),
    ],
    "GET /v1/responses/{response_id}/input_items": [
        Attempt("/v1/responses/{response}/input_items"),
        Attempt("/v1/responses/{waiting_response}/input_items"),
    ],
    "POST /v1/responses/{response_id}/cancel": [
        Attempt("/v1/responses/{response}/cancel"),
        Attempt("/v1/responses/{waiting_response}/cancel"),
    ],
}
