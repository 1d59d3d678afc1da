"""``/v1/vector_stores`` in the tenant matrix."""

from tests.gateway.tenants import Attempt

_ALL = "/v1/vector_stores"
_ONE = _ALL + "/{vector_store}"
_FILE = _ONE + "/files/{file}"
_BATCH = _ONE + "/file_batches/{file_batch}"

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/vector_stores": [
        Attempt(_ALL, {"name": "mine"}, 200, lambda body: body["file_counts"]["total"] == 0),
        Attempt(_ALL, {"file_ids": ["{file}"]}),
    ],
    "GET /v1/vector_stores": [
        Attempt(_ALL, status=200, shows=lambda body: all(one["name"] == "mine" for one in body["data"])),
        Attempt(_ALL + "?after={vector_store}"),
    ],
    "GET /v1/vector_stores/{vector_store_id}": [Attempt(_ONE)],
    "POST /v1/vector_stores/{vector_store_id}": [Attempt(_ONE, {"name": "mine"})],
    "DELETE /v1/vector_stores/{vector_store_id}": [Attempt(_ONE)],
    "POST /v1/vector_stores/{vector_store_id}/search": [Attempt(_ONE + "/search", {"query": "canary"})],
    "GET /v1/vector_stores/{vector_store_id}/files": [Attempt(_ONE + "/files")],
    "POST /v1/vector_stores/{vector_store_id}/files": [Attempt(_ONE + "/files", {"file_id": "{file}"})],
    "GET /v1/vector_stores/{vector_store_id}/files/{file_id}": [Attempt(_FILE)],
    "POST /v1/vector_stores/{vector_store_id}/files/{file_id}": [Attempt(_FILE, {"attributes": {"mine": 1}})],
    "DELETE /v1/vector_stores/{vector_store_id}/files/{file_id}": [Attempt(_FILE)],
    "POST /v1/vector_stores/{vector_store_id}/file_batches": [
        Attempt(_ONE + "/file_batches", {"file_ids": ["{file}"]}),
    ],
    "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}": [Attempt(_BATCH)],
    "POST /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel": [Attempt(_BATCH + "/cancel")],
    "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files": [Attempt(_BATCH + "/files")],
}
