r"""Parses a JSON request body once, to a plain object that can be sent on to the engine.

orjson rejects a lone surrogate (``"\\ud83d"``, half an emoji that a client cut off). Such a body is still JSON, so the
standard library parses it and U+FFFD replaces the half character; nothing else changes.
"""

import gc
import json
import math
import re
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Never, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError
from starlette.requests import ClientDisconnect

from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop.wire.limits import LIMIT_CODES
from memloop_service.chores import INLINE_BYTES, parsed
from memloop_service.http.json_output import json_text
from memloop_service.http.json_size import has_odd_numbers, is_lost, refuse_lost_digits, refuse_too_many_parts
from memloop_service.unknown_fields import unknown_field

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_COLLECTED = nullcontext()
_Result = TypeVar("_Result")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A request's body as bytes, unchanged unless repaired, and the object that they encode."""

    raw: bytes
    fields: Json


async def read_json(request: Request) -> JsonBody:
    """Parse the body, one JSON object. Raises InvalidRequest (400), and Unprocessable for too many values."""
    raw = await _whole(request)

    def read() -> JsonBody:
        with _no_collection(raw):
            return _parsed(raw)

    return await parsed(read, size=len(raw))


async def read_as(request: Request, model: type[Model]) -> tuple[JsonBody, Model]:
    """Parse the body and validate it as one of OpenAI's models. Raises as ``read_json`` and ``validated`` do."""
    raw = await _whole(request)

    def read() -> tuple[JsonBody, Model]:
        with _no_collection(raw):
            body = _parsed(raw)
            return body, validated(model, body.fields)

    return await parsed(read, size=len(raw))


async def read_with(request: Request, body: JsonBody, work: Callable[[Json], _Result]) -> _Result:
    """Return what ``work`` makes of the body's fields, those of a long body in a thread."""
    return await parsed(partial(work, body.fields), size=len(body.raw))


async def _whole(request: Request) -> bytes:
    """Return the body. Starlette's own ``body`` copies it to append an empty piece; it finds this one instead."""
    raw: bytes | None = getattr(request, "_body", None)
    if raw is None:
        raw = await _received(request)
        setattr(request, "_body", raw)  # noqa: B010 - where Starlette keeps it too
    return raw


async def _received(request: Request) -> bytes:
    """Receive the body. Raises ClientDisconnect, as Starlette's ``stream`` does, whose steps it saves."""
    pieces: list[bytes] = []
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _parsed(raw: bytes) -> JsonBody:
    refuse_too_many_parts(raw)
    try:
        return JsonBody(raw, _object(orjson.loads(raw)))
    except orjson.JSONDecodeError as strict:
        fields = _object(_parsed_leniently(raw, strict))
        return JsonBody(json_text(fields), fields)


def validated(model: type[Model], fields: Json) -> Model:
    """Validate the fields as one of OpenAI's models.

    Raises Unprocessable (422) with the name of the first invalid field, UnknownParameter (400) where objects of ours
    have an unknown one.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _first_fault(model, error) from error


async def read_ours(request: Request, model: type[Model]) -> Model:
    """Parse the body as one of our models, types strict: ``0`` is not a boolean. Raises as the two above."""
    raw = await _whole(request)

    def read() -> Model:
        with _no_collection(raw):
            return _ours(model, raw)

    return await parsed(read, size=len(raw))


def _ours(model: type[Model], raw: bytes) -> Model:
    """Parse and validate in one go. What the validator's own parser may read otherwise than orjson goes through both.

    Those are numbers, and bodies with a fault that is not in one of the fields.
    """
    refuse_too_many_parts(raw)
    if not has_odd_numbers(raw):
        try:
            return model.model_validate_json(raw, strict=True)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]:
                raise _first_fault(model, error) from error
    return strictly(model, _parsed(raw).raw)


def _no_collection(raw: bytes) -> AbstractContextManager[None]:
    """Make all objects of a long body without a collection in between: it would visit them all every few thousand.

    100,000 small objects take 19 ms in place of 85 ms, and the event loop waits for these.
    """
    return _COLLECTED if len(raw) <= INLINE_BYTES else _uncollected()


@contextmanager
def _uncollected() -> Generator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def strictly(model: type[Model], raw: bytes) -> Model:
    """Validate a JSON object against one of our models. Raises UnknownParameter (400) and Unprocessable (422)."""
    refuse_lost_digits(raw)
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        raise _first_fault(model, error) from error


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
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(part) for part in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _whole_characters(part) for key, part in value.items()}
    return value
