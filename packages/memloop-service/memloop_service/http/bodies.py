r"""Parses a JSON request body once, to a plain object that can be sent on to the engine.

orjson rejects a lone surrogate (``"\\ud83d"``, half an emoji that a client cut off). Such a body is still JSON, so the
standard library parses it and U+FFFD replaces the half character; nothing else changes.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Never, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError

from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop.wire.limits import LIMIT_CODES
from memloop_service.chores import parsed
from memloop_service.http.json_output import json_text
from memloop_service.http.json_size import is_lost, refuse_lost_digits, refuse_too_many_parts
from memloop_service.unknown_fields import unknown_field

_Result = TypeVar("_Result")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A request's body as bytes, unchanged unless repaired, and the object that they encode."""

    raw: bytes
    fields: Json


async def read_json(request: Request) -> JsonBody:
    """Parse the body, one JSON object. Raises InvalidRequest (400), and Unprocessable for too many values."""
    raw = await request.body()
    return await parsed(partial(_parsed, raw), size=len(raw))


async def read_as(request: Request, model: type[Model]) -> tuple[JsonBody, Model]:
    """Parse the body and validate it as one of OpenAI's models. Raises as ``read_json`` and ``validated`` do."""
    raw = await request.body()

    def read() -> tuple[JsonBody, Model]:
        body = _parsed(raw)
        return body, validated(model, body.fields)

    return await parsed(read, size=len(raw))


async def read_with(request: Request, body: JsonBody, work: Callable[[Json], _Result]) -> _Result:
    """Return what ``work`` makes of the body's fields, those of a long body in a thread."""
    return await parsed(partial(work, body.fields), size=len(body.raw))


async def read_ours(request: Request, model: type[Model]) -> Model:
    """Parse the body as one of our models, types strict: ``0`` is not a boolean. Raises as ``read_json`` and
    ``strictly`` do.
    """
    raw = await request.body()
    return await parsed(lambda: strictly(model, _parsed(raw).raw), size=len(raw))


async def refuse_half_characters(request: Request) -> None:
    """Raise Unprocessable (422) for a lone surrogate in a body that FastAPI reads: pydantic would pass it on.

    A dependency.
    """
    raw = await request.body()
    if b"\\ud" in raw or b"\\uD" in raw:
        try:
            json.dumps(await request.json(), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Unprocessable("The body has half of a surrogate pair.", code="invalid_json") from error


def validated(model: type[Model], fields: Json) -> Model:
    """Validate the fields as one of OpenAI's models.

    Raises Unprocessable (422) with the name of the first invalid field, UnknownParameter (400) where objects of ours
    have an unknown one.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _first_fault(model, error) from error


def strictly(model: type[Model], raw: bytes) -> Model:
    """Validate a JSON object against one of our models. Raises UnknownParameter (400) and Unprocessable (422)."""
    refuse_lost_digits(raw)
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        raise _first_fault(model, error) from error


def _parsed(raw: bytes) -> JsonBody:
    refuse_too_many_parts(raw)
    try:
        return JsonBody(raw, _object(orjson.loads(raw)))
    except orjson.JSONDecodeError as strict:
        fields = _object(_parsed_leniently(raw, strict))
        return JsonBody(json_text(fields), fields)


def _first_fault(model: type[BaseModel], error: ValidationError) -> InvalidRequest:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    if (unknown := unknown_field(model, cast("list[dict[str, object]]", faults))) is not None:
        return unknown
    first = faults[0]
    code = first["type"] if first["type"] in LIMIT_CODES else None
    param, words = ".".join(str(part) for part in first["loc"]), first["msg"].replace("Tuple", "List", 1)
    return Unprocessable(f"{param}: {words}" if param else words, param=param or None, code=code)


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
    return _finite(digits) if is_lost(digits) else int(digits)


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError("a number is out of range")
    return number


def _whole_characters(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, list):
        return [_whole_characters(part) for part in value]
    if isinstance(value, dict):
        return {_whole(key): _whole_characters(part) for key, part in value.items()}
    return value


def _whole(text: str) -> str:
    """Replace each lone surrogate, by a codec: ``re`` would hold the interpreter for a second at 16 MiB of them."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
