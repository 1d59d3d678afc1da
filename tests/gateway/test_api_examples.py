"""The examples of the API reference are what the schemas beside them describe, and what the routes accept."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from gateway.document import examples
from gateway.settings import GatewaySettings
from tests.gateway.openapi_document import DOCUMENT
from tests.gateway.running import Gateway

OPERATIONS: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}


def _bodies(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operation's JSON bodies with a schema: that of the request, and that of the first successful response."""
    sides = [("request", operation.get("requestBody", {}))]
    sides += [("response", body) for status, body in operation["responses"].items() if status.startswith("2")][:1]
    for side, body in sides:
        if "application/json" in body.get("content", {}):
            yield side, body["content"]["application/json"]


BODIES = {(name, side): body for name, operation in OPERATIONS.items() for side, body in _bodies(operation)}

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
    assert set(examples()) - set(OPERATIONS) == set()


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
