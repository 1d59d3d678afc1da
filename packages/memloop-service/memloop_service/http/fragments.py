"""Shapes that routes share: a body that is read by hand, an answer that may be a stream."""

from pkgutil import resolve_name
from typing import Any, Final, cast

from pydantic import BaseModel

Fragment = dict[str, Any]
"""A piece of the document, as FastAPI's own functions take and give it."""

_EVENT_STREAM: Final[Fragment] = {"text/event-stream": {}}
_REF = "#/components/schemas/{model}-Input"
_MODEL: Final = "x-model"


def body_of(model: type[BaseModel]) -> Fragment:
    """Return a route's ``openapi_extra``: a JSON body that the route reads and validates itself.

    It holds the model's name; ``with_schema`` makes the schema, which would take a start too long.
    """
    return _json_body({_MODEL: f"{model.__module__}:{model.__qualname__}"})


def with_schema(fragment: Fragment | None) -> Fragment | None:
    """Return what ``body_of`` made with the JSON Schema of its model; anything else as it is."""
    content = (fragment or {}).get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get(_MODEL)
    if name is None:
        return fragment
    return _json_body(cast(type[BaseModel], resolve_name(name)).model_json_schema(ref_template=_REF))


def engines_body(*required: str) -> Fragment:
    """Return a route's ``openapi_extra``: a JSON body that is the engine's to judge, all but its form."""
    return _json_body({"type": "object", "required": list(required), "additionalProperties": True})


def streams(model: type[BaseModel] | None = None) -> dict[int | str, Fragment]:
    """Return a route's ``responses``: 200 is one JSON object, or events when the request asks for a stream."""
    json: Fragment = {} if model is not None else {"application/json": {"schema": {"type": "object"}}}
    answer: Fragment = {"description": "The answer, or its events", "content": json | _EVENT_STREAM}
    return {200: answer if model is None else answer | {"model": model}}


def _json_body(schema: Fragment) -> Fragment:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
