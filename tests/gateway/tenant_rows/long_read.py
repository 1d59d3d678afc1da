"""``/v1/long-read`` in the tenant matrix."""

from tests.gateway.long_reads import asked
from tests.gateway.tenants import Attempt

_EMPTY_READS = Attempt("/v1/long-read", None, 200, lambda body: body["data"] == [] and not body["has_more"])

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/long-read": [
        Attempt("/v1/long-read", asked(save_to_memory={"user_id": "alice"}), 200, lambda body: body["id"] != ""),
        Attempt("/v1/long-read", asked(document={"file_id": "{file}"})),
        Attempt("/v1/long-read", asked(document={"file_id": "{file}"}, background=True)),
        Attempt("/v1/long-read", asked(document={"file_id": "{read}"})),
        Attempt("/v1/long-read", asked(document={"file_ids": ["{file}"]})),
    ],
    "POST /v1/long-read/estimate": [Attempt("/v1/long-read/estimate", asked(document={"file_id": "{file}"}))],
    "GET /v1/long-read": [_EMPTY_READS, Attempt("/v1/long-read?after={read}")],
    "GET /v1/long-read/{read_id}": [
        Attempt("/v1/long-read/{read}"),
        Attempt("/v1/long-read/{waiting_read}"),
        Attempt("/v1/long-read/{read}?stream=true&starting_after=-1"),
        Attempt("/v1/long-read/{event}"),
    ],
    "POST /v1/long-read/{read_id}/cancel": [
        Attempt("/v1/long-read/{read}/cancel"),
        Attempt("/v1/long-read/{waiting_read}/cancel"),
        Attempt("/v1/long-read/{waiting_event}/cancel"),
    ],
    "DELETE /v1/long-read/{read_id}": [
        Attempt("/v1/long-read/{read}"),
        Attempt("/v1/long-read/{waiting_read}"),
        Attempt("/v1/long-read/{waiting_event}"),
    ],
}
