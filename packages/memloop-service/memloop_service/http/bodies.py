r"""Parses a JSON request body once, to a plain object that can be sent on to the engine, and writes JSON.

orjson rejects a lone surrogate (``"\\ud83d"``, half an emoji that a client cut off). Such a body is still JSON, so the
standard library parses it and U+FFFD replaces the half character; nothing else changes.

Looks at a JSON body before it is parsed: how much it would grow, and whether it has integers that no store keeps.

Each object, list, key and element costs 50 to 200 bytes in memory, though ``{},`` has three in the body. So brackets,
braces, commas and colons are counted first, at the speed of C. Those in a string cost nothing: a body that seems to
have too many is counted again without its strings.
"""

import asyncio
import json
import math
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

import orjson
from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError
from starlette.responses import Response

from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop_service.errors import first_fault


def json_text(value: object) -> bytes:
    """Encode JSON that a client sent. Raises InvalidRequest (400) beyond orjson's depth of about 254 levels."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("The body is nested too deeply.", code="too_deep") from error


def json_response(model: BaseModel, *, status: int = 200) -> Response:
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")


MOST_PARTS: Final = 300_000
"""Values of one body: as many as the tokens that an embeddings request may have."""
_BYTES_OF_MOST_PARTS: Final = 3 * MOST_PARTS // 2
"""A shorter body cannot hold so many: ``[],`` is the densest JSON, two parts in three bytes."""
_STRING: Final = re.compile(rb'"[^"]*+"')
_INTEGERS: Final = range(-(2**63), 2**63)
_MOST_DIGITS: Final = 20
_RUN: Final = re.compile(rb"[0-9]{19}")
"""An integer beyond 64 bits has at least 19 digits, which cover three bytes that are six apart."""
_ZEROS: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
"""Translates every digit to a zero and every other byte to a space: ten times as fast as to search for a run."""
_INTEGER: Final = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")
_WINDOW: Final = 1 << 18
"""One call of ``re`` holds the interpreter; the event loop gets it between two windows."""


def refuse_too_many_parts(raw: bytes) -> None:
    """Raises Unprocessable (422) for a body that would take hundreds of megabytes as objects."""
    if len(raw) > _BYTES_OF_MOST_PARTS and _parts(raw) > MOST_PARTS and _parts(_without_strings(raw)) > MOST_PARTS:
        raise _too_many()


def refuse_lost_digits(raw: bytes) -> None:
    """Raises Unprocessable (422) for an integer of more than 64 bits in a JSON text: no store keeps it exactly."""
    if b"000" not in raw[::6].translate(_ZEROS):
        return
    if any(_RUN.search(raw, at, at + _WINDOW + _MOST_DIGITS) for at in range(0, len(raw), _WINDOW)):
        for integer in _INTEGER.finditer(_without_strings(raw)):
            if is_lost(integer[0].decode()):
                raise Unprocessable("An integer in the body takes more than 64 bits.", code="number_out_of_range")


def is_lost(digits: str) -> bool:
    """Return whether an integer of these digits takes more than 64 bits."""
    return len(digits) > _MOST_DIGITS or int(digits) not in _INTEGERS


def _parts(raw: bytes) -> int:
    return sum(map(raw.count, (b"[", b"{", b",", b":")))


def _without_strings(raw: bytes) -> bytes:
    """Return the JSON text with a space for each string. Raises Unprocessable for more strings than a body may have."""
    unescaped = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * MOST_PARTS:  # each is a value or a key
        raise _too_many()
    return _STRING.sub(b" ", unescaped)


def _too_many() -> Unprocessable:
    message = f"The body has more than {MOST_PARTS} values. Send several requests."
    return Unprocessable(message, code="too_many_values")


_INLINE_BYTES: Final = 16_384
"""Bodies up to this length are parsed on the event loop: a thread would take longer."""
_BODIES: Final = ThreadPoolExecutor(1, "bodies")
"""A second thread would only contend for the interpreter, and hold the objects of a second body."""
_LONG_S: Final = 0.004
_REST: Final = 3.0
_MOST_REST_S: Final = 0.5
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


async def parsed(work: Callable[[], _Result], *, size: int) -> _Result:
    """Parse a body of so many bytes: on the event loop if it is short, else in the thread of long ones.

    A parser holds the interpreter as long as it takes. So the thread rests after a long one, three times its length:
    the event loop meets a held interpreter in a quarter of its turns at most.
    """
    if size <= _INLINE_BYTES:
        return work()

    def rested() -> _Result:
        began = time.thread_time()
        try:
            return work()
        finally:
            if (took_s := time.thread_time() - began) > _LONG_S:
                time.sleep(min(_REST * took_s, _MOST_REST_S))

    return await asyncio.get_running_loop().run_in_executor(_BODIES, rested)


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
        try:
            value: object = json.loads(
                raw.decode("utf-8"),
                parse_constant=_finite,
                parse_float=_finite,
                parse_int=lambda digits: _finite(digits) if is_lost(digits) else int(digits),  # as orjson has it
            )
            fields = _object(_whole_characters(cast(JsonValue, value)))
        except (ValueError, RecursionError):
            raise InvalidRequest(f"The body is not valid JSON: {strict}", code="invalid_json") from None
        return JsonBody(json_text(fields), fields)


def _first_fault(model: type[BaseModel], error: ValidationError) -> InvalidRequest:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return first_fault(model, cast("list[dict[str, Any]]", faults))


def _object(value: JsonValue) -> Json:
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.", code="invalid_json")
    return value


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError("a number is out of range, or not JSON")
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
