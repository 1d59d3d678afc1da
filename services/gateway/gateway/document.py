"""Builds the OpenAPI document from FastAPI's routes, the bodies parsed by hand, keys, headers and examples."""

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import Final, cast

import orjson
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gateway.access import Needed
from memloop_service.http import Fragment, with_schema

_DESCRIPTION = """OpenAI-compatible routes with long-term memory and long reading. Every error is `{"error": {...}}`.
Every route works with and without a trailing slash. A parameter, a field or a body that a route does not know is a 400
`unknown_parameter`, unless its `x-unknown-parameters` is `ignored`: OpenAI's and Anthropic's routes ignore unknown
parameters of the query."""
_SCHEMES: Final[Fragment] = {
    "Bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Token KEY` is accepted too."},
    "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_HEADERS: Final[Fragment] = {
    "x-request-id": {"description": "Identifies the request in the server's logs.", "schema": {"type": "string"}},
    "openai-processing-ms": {"description": "Milliseconds until the response started.", "schema": {"type": "string"}},
}


def describe(app: FastAPI) -> Callable[[], Fragment]:
    """Return the application's ``openapi`` function, which builds the document once."""
    plain = app.openapi

    def openapi() -> Fragment:
        if app.openapi_schema is None:
            routes = [route for route in app.routes if isinstance(route, APIRoute)]
            for route in routes:
                route.openapi_extra = with_schema(route.openapi_extra)
            found, shown = plain(), examples()
            found["info"] |= {"title": "Memloop", "description": _DESCRIPTION}
            found["components"]["securitySchemes"] = _SCHEMES
            needed = {
                (method.lower(), route.path_format): need
                for route in routes
                for need in needs_of(route)
                for method in route.methods
            }
            for path, methods in found["paths"].items():
                for method, operation in methods.items():
                    _name_bodies(operation, found["components"]["schemas"])
                    _add_keys(operation, needed.get((method, path)))
                    _add_examples(operation, shown.get(operation["operationId"], {}))
        return cast(Fragment, app.openapi_schema)

    return openapi


def _name_bodies(operation: Fragment, schemas: Fragment) -> None:
    """Move the schemas of hand-parsed bodies to the components that their references name.

    Raises ValueError when two models have the same name.
    """
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for name, schema in content["schema"].pop("$defs", {}).items():
            if schemas.setdefault(f"{name}-Input", schema) != schema:
                raise ValueError(f"two models of bodies are called {name}")


def _add_keys(operation: Fragment, need: Needed | None) -> None:
    """Add keys and scopes; OpenAPI 3.1 lets every security scheme list roles, here the scopes. And what is ignored."""
    scopes = [need.scope] if need is not None and need.scope is not None else []
    operation["security"] = [] if need is None else [{name: scopes} for name in _SCHEMES]
    operation["x-unknown-parameters"] = "ignored" if need is not None and need.ignores_unknown else "refused"


def _add_examples(operation: Fragment, example: Fragment) -> None:
    """Add the headers of the responses, and the examples of the request and of the successful response."""
    bodies = {"request": operation.get("requestBody", {})}
    for status, response in operation["responses"].items():
        response["headers"] = _HEADERS
        if status.startswith("2"):
            bodies.setdefault("response", response)
    for side, body in bodies.items():
        content = body.get("content", {}).get("application/json")
        if content is not None and side in example:
            content["example"] = example[side]


def needs_of(route: APIRoute) -> list[Needed]:
    """Return the scope checks of the route; none for a public route."""
    return [needed.call for needed in _all(route.dependant) if isinstance(needed.call, Needed)]


def _all(dependant: Dependant) -> Iterator[Dependant]:
    for needed in dependant.dependencies:
        yield needed
        yield from _all(needed)


def examples() -> Mapping[str, Fragment]:
    """Return the JSON ``request`` and ``response`` of each operation, by its id, from ``gateway/examples``."""
    folder = files("gateway") / "examples"
    read = (cast(Mapping[str, Fragment], orjson.loads(file.read_bytes())) for file in folder.iterdir())
    return {operation: example for area in read for operation, example in area.items()}
