"""The two bases of all wire models, and JSON without one: ours reject unknown fields, OpenAI's keep them.

Their errors do not quote the input: errors are logged, users' texts are not.

Beside them, what ties together the logs and traces that one request leaves in several processes. Both values belong to
the task at hand and go with every call that it makes: the request id in ``X-Client-Request-Id``, the trace in W3C Trace
Context's headers. A queued job keeps them for the worker. The tenant, whose account the task's tokens go to, stays in
the process.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self, cast

import orjson
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    TypeAdapter,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

Integral: Final = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
"""In ``Annotated[int, …]``: ``8.0`` is an integer, as JSON Schema 2020-12 (validation, section 6.1.1) has it."""


def _boolean(value: object) -> object:
    if not isinstance(value, bool | None):
        raise PydanticCustomError("bool_type", "Input should be a valid boolean")
    return value


A_BOOLEAN: Final = BeforeValidator(_boolean)
"""In front of ``Literal[False]``, which accepts 0."""


_SEQUENCES: Final = ("list", "tuple", "set", "frozenset")
_NO_SCHEMAS: Final = ("default", "metadata")


def _stop_at_first_fault(part: object, model: type) -> None:
    """Mark the sequences of the model's schema; those of a model inside it are marked already."""
    if isinstance(part, dict):
        schema = cast("dict[str, object]", part)
        found = schema.get("cls") if schema.get("type") == "model" else None
        if isinstance(found, type) and found is not model and issubclass(found, FirstFault):
            return
        if schema.get("type") in _SEQUENCES:
            schema["fail_fast"] = True
        for name, inner in schema.items():
            if name not in _NO_SCHEMAS:
                _stop_at_first_fault(inner, model)
    elif isinstance(part, list):
        for inner in cast("list[object]", part):
            _stop_at_first_fault(inner, model)


class FirstFault(BaseModel):
    """A model whose lists end their validation with the first faulty element.

    Pydantic goes on by default and keeps an error for each: 420 KB of ``{},`` as messages took 2.7 s and 170 MB.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _stop_at_first_fault(schema, source)
        return schema


class CheckedCopy(FirstFault):
    """A model whose copies accept only its own fields; pydantic's ``model_copy`` sets a misspelt one silently."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the model. Raises AttributeError for a field that it does not have."""
        unknown = (update or {}).keys() - type(self).model_fields.keys()
        if unknown:
            raise AttributeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return super().model_copy(update=update, deep=deep)

    def shared_with(self, kind: type[BaseModel]) -> dict[str, Any]:
        """Return the values of the fields that a model of this kind has too."""
        return {name: getattr(self, name) for name in type(self).model_fields.keys() & kind.model_fields.keys()}


class Wire(CheckedCopy):
    """A frozen model of our own; an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True, hide_input_in_errors=True
    )


class Given(Wire):
    """What a client of OpenAI's gives. A field that the public API has, and no engine of ours gets, may be null."""

    @model_validator(mode="before")
    @classmethod
    def _without_unknown_nulls(cls, fields: object) -> object:
        known = {field.alias or name for name, field in cls.model_fields.items()}
        kept = {name: value for name, value in object_in(fields).items() if value is not None or name in known}
        return kept if isinstance(fields, dict) else fields


@dataclass(frozen=True, slots=True)
class ShownAs:
    """In ``Annotated``: the OpenAPI document shows the field as this type; its reader validates it by hand."""

    type: Any

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        del schema
        return handler(TypeAdapter[Any](self.type).core_schema)


class OpenWire(FirstFault):
    """A frozen model of the OpenAI API; unknown fields pass through untouched."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)


def parsed_object(raw: bytes) -> dict[str, JsonValue]:
    """Parse the JSON object in the bytes; empty when there is none. ``NaN`` and infinities are null."""
    try:
        return object_in(orjson.loads(raw))
    except orjson.JSONDecodeError:
        pass
    try:
        return object_in(json.loads(raw, parse_constant=lambda _: None)) if has_not_numbers(raw) else {}
    except (ValueError, RecursionError):
        return {}


def has_not_numbers(raw: bytes) -> bool:
    """Return whether the bytes may hold a number that JSON has no form for; Python's own writer writes them."""
    return b"NaN" in raw or b"Infinity" in raw


def object_in(value: object) -> dict[str, JsonValue]:
    """Return the value if it is an object, else an empty one."""
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else {}


def objects_in(value: object) -> Sequence[dict[str, JsonValue]]:
    """Return the objects of a list; empty for any other value."""
    return [object_in(part) for part in cast(list[object], value)] if isinstance(value, list) else []


CALLERS_ID: Final = "x-client-request-id"
"""The header that names the caller's own request."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered or, in a worker, that queued the job; empty outside of one."""

spender: ContextVar[str] = ContextVar("spender", default="")
"""The tenant whose request is being answered or whose job is being run; empty outside of both."""

trace: ContextVar[Mapping[str, str]] = ContextVar("trace", default=MappingProxyType({}))
"""``traceparent``, and ``tracestate`` if any, of the span at work; empty without tracing."""


class Origin(Wire):
    """Where a job comes from."""

    request_id: str = ""
    traceparent: str = ""

    @classmethod
    def here(cls) -> "Origin":
        """The request and the span at work."""
        return cls(request_id=request_id.get(), traceparent=trace.get().get("traceparent", ""))


def outgoing() -> dict[str, str]:
    """The headers of a call that is made on behalf of the request at hand."""
    own = request_id.get()
    return {CALLERS_ID: own, **trace.get()} if own else dict(trace.get())


def trace_id() -> str:
    """The trace that the span at work belongs to, 32 hex digits; empty without tracing."""
    return trace.get().get("traceparent", "")[3:35]


@contextmanager
def traced_as(headers: Mapping[str, str]) -> Generator[None]:
    """Calls made meanwhile carry these headers of a span."""
    token = trace.set(headers)
    try:
        yield
    finally:
        trace.reset(token)
