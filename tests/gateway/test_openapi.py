"""What the OpenAPI document says of every route: its body, its keys, its errors."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.openapi_document import DOCUMENT
from tests.gateway.tenant_rows.all_rows import OPEN

OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
WITHOUT_BODY = (
    "POST /v1/admin/dead-letters/{job_id}/requeue",
    "POST /v1/memory/events/{event_id}/retry",
    "POST /v1/memory/events/{event_id}/redecide",
    "POST /v1/long-read/{read_id}/cancel",
    "POST /v1/memory/{item_id}/recover",
    "POST /v1/responses/{response_id}/cancel",
    "POST /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_route_documents_its_errors_and_whether_it_needs_a_key(name: str) -> None:
    operation = OPERATIONS[name]
    for status in ("4XX", "5XX"):
        schema = operation["responses"][status]["content"]["application/json"]["schema"]
        shape = "ErrorResponse" if name.startswith("POST /v1/messages") else "ErrorEnvelope"
        assert schema == {"$ref": f"#/components/schemas/{shape}"}
        assert "x-request-id" in operation["responses"][status]["headers"]
    schemes = [tuple(scheme) for scheme in operation["security"]]
    assert schemes == ([] if name in OPEN else [("Bearer",), ("ApiKey",)])


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_a_response_needs_no_input(path: str) -> None:
    body = OPERATIONS[f"POST {path}"]["requestBody"]["content"]["application/json"]["schema"]
    assert "input" in body["properties"]
    assert "input" not in body.get("required", ())


def test_a_route_documents_the_scope_that_its_key_needs() -> None:
    assert OPERATIONS["POST /v1/chat/completions"]["security"] == [{"Bearer": ["chat"]}, {"ApiKey": ["chat"]}]
    assert OPERATIONS["GET /v1/models"]["security"] == [{"Bearer": []}, {"ApiKey": []}]


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith(("POST", "PATCH"))])
def test_every_body_is_described(name: str) -> None:
    assert ("requestBody" in OPERATIONS[name]) == (name not in WITHOUT_BODY)


def test_an_operation_keeps_its_id() -> None:
    """Generated clients have methods of these names. A new operation is a new line of the file."""
    listed = (Path(__file__).parent / "golden/operation_ids.txt").read_text("utf-8").splitlines()
    published = {f"{operation['operationId']} {name}" for name, operation in OPERATIONS.items()}
    assert published == set(listed)


def test_an_operations_id_is_a_plain_name_of_its_own() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", one)] == []


def test_every_reference_leads_somewhere() -> None:
    references: list[str] = re.findall(r'"\$ref": "([^"]*)"', json.dumps(DOCUMENT))
    missing = [reference for reference in references if not _found(reference)]
    assert references
    assert missing == []


def _found(reference: str) -> bool:
    node: Any = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        node = node.get(name)
    return node is not None
