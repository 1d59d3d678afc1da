"""Writes JSON."""

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from memloop.wire.errors import InvalidRequest


def json_text(value: object) -> bytes:
    """Encode JSON that a client sent. Raises InvalidRequest (400) beyond orjson's depth of about 254 levels."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("The body is nested too deeply.", code="too_deep") from error


def json_response(model: BaseModel, *, status: int = 200) -> Response:
    """Return the model as a response."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")
