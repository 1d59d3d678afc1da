"""``/v1/files`` in the tenant matrix."""

from tests.gateway.tenants import Attempt

_NO_FILES = Attempt("/v1/files", None, 200, lambda body: body["data"] == [] and not body["has_more"])

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/files": [Attempt("/v1/files", {"file": "{file}", "purpose": "user_data"}, 400)],
    "POST /v1/files/from-url": [Attempt("/v1/files/from-url", {"url": "https://example.org/{file}"}, 501)],
    "GET /v1/files": [_NO_FILES, Attempt("/v1/files?after={file}")],
    "GET /v1/files/{file_id}": [Attempt("/v1/files/{file}"), Attempt("/v1/files/{read}")],
    "GET /v1/files/{file_id}/content": [
        Attempt("/v1/files/{file}/content"),
        Attempt("/v1/files/{file}/content?form=text"),
    ],
    "DELETE /v1/files/{file_id}": [Attempt("/v1/files/{file}"), Attempt("/v1/files/{waiting_event}")],
}
