"""The routes that pass through to the engine in the tenant matrix."""

from tests.gateway.tenants import Attempt

SAME_FOR_ALL = {
    "GET /v1/models": "the engine's list",
    "GET /v1/models/{model_id:path}": "the engine's list",
    "POST /v1/embeddings": "passed through; nothing is kept",
    "POST /v1/completions": "passed through; nothing is kept",
}

ATTEMPTS: dict[str, list[Attempt]] = {}
