"""What a route adds to the OpenAPI document: a body that it reads by hand, an answer that may be a stream."""

from typing import Any, Final

from pydantic import BaseModel

Fragment = dict[str, Any]
"""A piece of the document, as FastAPI's own functions take and give it."""

_EVENT_STREAM: Final[Fragment] = {"text/event-stream": {}}
_REF = "#/components/schemas/{model}-Input"


def body_of(model: type[BaseModel]) -> Fragment:
    """Return a route's ``openapi_extra``: a JSON body that the route reads and validates itself."""
    return _json_body(model.model_json_schema(ref_template=_REF))


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
