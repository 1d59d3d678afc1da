"""Writes JSON that a client sent again. What can be read may be nested too deeply to be written."""

import orjson

from memloop.wire.errors import InvalidRequest


def json_text(value: object) -> bytes:
    """Encode the value as JSON. Raises InvalidRequest (400) beyond orjson's depth of about 254 levels."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("The body is nested too deeply.", code="too_deep") from error
