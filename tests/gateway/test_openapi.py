"""What the OpenAPI document says of every route: its body, keys, errors, and examples that the routes accept."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gateway.document import examples
from gateway.settings import GatewaySettings
from tests.gateway.openapi_document import DOCUMENT
from tests.gateway.running import Gateway
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


BY_ID: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}


def _bodies(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operation's JSON bodies with a schema: that of the request, and that of the first successful response."""
    sides = [("request", operation.get("requestBody", {}))]
    sides += [("response", body) for status, body in operation["responses"].items() if status.startswith("2")][:1]
    for side, body in sides:
        if "application/json" in body.get("content", {}):
            yield side, body["content"]["application/json"]


BODIES = {(name, side): body for name, operation in BY_ID.items() for side, body in _bodies(operation)}

POSTED = [
    (path, methods["post"]["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    if "post" in methods and "{" not in path and "request" in examples().get(methods["post"]["operationId"], {})
]


@pytest.mark.parametrize(("name", "side"), BODIES)
def test_every_json_body_has_an_example_of_its_own_schema(name: str, side: str) -> None:
    body = BODIES[name, side]
    assert "example" in body, f"gateway/examples has no {side} of {name}"
    jsonschema.validate(body["example"], {**body["schema"], "components": DOCUMENT["components"]})


def test_every_example_belongs_to_an_operation() -> None:
    assert set(examples()) - set(BY_ID) == set()


def test_an_example_of_another_shape_is_noticed() -> None:
    body = BODIES["search_memory", "request"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"query": 7}, {**body["schema"], "components": DOCUMENT["components"]})


@pytest.fixture
def settings(settings: GatewaySettings) -> GatewaySettings:
    """Nobody waits for a worker, since none is there."""
    return settings.model_copy(update={"sync_wait_s": 0.1})


@pytest.mark.parametrize(("path", "name"), POSTED)
async def test_a_route_takes_its_example(gateway: Gateway, path: str, name: str) -> None:
    answer = await gateway.post(path, examples()[name]["request"])
    assert answer.status not in (400, 405, 415, 422), answer.raw
