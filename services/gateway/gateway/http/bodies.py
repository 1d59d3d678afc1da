r"""Parses a JSON request body once, to a plain object that can be sent on to the engine.

orjson rejects a lone surrogate (``"\\ud83d"``, half an emoji that a client cut off). Such a body is still JSON, so the
standard library parses it and U+FFFD replaces the half character; nothing else changes.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Final, Never, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError

from gateway.http.json_output import json_text
from gateway.http.json_size import refuse_too_many_parts
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop.wire.limits import LIMIT_CODES

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MANY_DIGITS = re.compile(rb"[0-9]{19}")
_STEP: Final = 6
_DIGITS_BY_STEPS = re.compile(rb"[0-9]{3}")
"""Nineteen digits in a row cover three bytes that are six apart, wherever they begin."""
_MOST_DIGITS: Final = 20
_INTEGERS: Final = range(-(2**63), 2**63)
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A request's body as bytes, unchanged unless repaired, and the object that they encode."""

    raw: bytes
    fields: Json


async def read_json(request: Request) -> JsonBody:
    """Parse the body, one JSON object. Raises InvalidRequest (400), and Unprocessable for too many values."""
    raw = await request.body()
    refuse_too_many_parts(raw)
    try:
        return JsonBody(raw, _object(orjson.loads(raw)))
    except orjson.JSONDecodeError as strict:
        fields = _object(_parsed_leniently(raw, strict))
        return JsonBody(json_text(fields), fields)


def validated(model: type[Model], fields: Json) -> Model:
    """Validate the fields as one of OpenAI's models. Raises Unprocessable (422), naming the first invalid field."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _first_fault(error) from error


async def read_ours(request: Request, model: type[Model]) -> Model:
    """Parse the body as one of our models, types strict: ``0`` is not a boolean. Raises as the two above."""
    return strictly(model, (await read_json(request)).raw)


def strictly(model: type[Model], raw: bytes) -> Model:
    """Validate a JSON object against one of our models. Raises Unprocessable (422), naming the first invalid field."""
    _refuse_lost_digits(raw)
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        raise _first_fault(error) from error


def _first_fault(error: ValidationError) -> Unprocessable:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    code = first["type"] if first["type"] in LIMIT_CODES else None
    return Unprocessable(first["msg"], param=".".join(str(part) for part in first["loc"]) or None, code=code)


def _refuse_lost_digits(raw: bytes) -> None:
    """Raise Unprocessable for an integer of more than 64 bits: no store keeps it exactly."""

    def checked(digits: str) -> int:
        if len(digits) > _MOST_DIGITS or int(digits) not in _INTEGERS:
            raise Unprocessable("An integer in the body takes more than 64 bits.", code="number_out_of_range")
        return int(digits)

    if _DIGITS_BY_STEPS.search(raw[::_STEP]) and _MANY_DIGITS.search(raw):
        json.loads(raw, parse_int=checked)


def _object(value: JsonValue) -> Json:
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.", code="invalid_json")
    return value


def _parsed_leniently(raw: bytes, strict: orjson.JSONDecodeError) -> JsonValue:
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_as_orjson_has_it)
        return _whole_characters(cast(JsonValue, value))
    except (ValueError, RecursionError):
        raise InvalidRequest(f"The body is not valid JSON: {strict}", code="invalid_json") from None


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


def _as_orjson_has_it(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS and int(digits) in _INTEGERS else _finite(digits)


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError("a number is out of range")
    return number


def _whole_characters(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(part) for part in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _whole_characters(part) for key, part in value.items()}
    return value
