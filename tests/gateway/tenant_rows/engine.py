"""The routes that pass through to the engine in the tenant matrix."""

from tests.gateway.tenants import Attempt

SAME_FOR_ALL = {
    "GET /v1/models": "the engine's list",
    "GET /v1/models/{model_id:path}": "the engine's list",
    "POST /v1/embeddings": "passed through; nothing is kept",
    "POST /v1/completions": "passed through; nothing is kept",
}

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/responses": [
        Attempt("/v1/responses", {"model": "m", "input": "x", "previous_response_id": "resp_of_a"}, 501),
        Attempt("/v1/responses", {"model": "m", "input": "x", "conversation": "conv_of_a"}, 501),
    ],
}
