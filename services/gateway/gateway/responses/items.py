"""The items of the Responses API that a conversation consists of: messages, function calls, their outputs, reasoning.

Unknown fields are refused, because no engine would receive them, unless they are null. Items are named, and redacted
before they are stored. Source: OpenAI API reference, "Responses".
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, cast, get_args

import orjson
from pydantic import BaseModel, JsonValue, ValidationError, WithJsonSchema

from gateway.policy import Keeper, Redaction, Redactions, redacted_json
from gateway.responses.calls import CALLS, OUTPUTS, Call, Identified, InputText, Output, Part
from memloop.wire.base import Given, ShownAs
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable
from memloop.wire.fields import LIMIT_CODES
from memloop.wire.memory import Scope

_Model = TypeVar("_Model", bound=BaseModel)
_NOT_OURS: Final = frozenset({"extra_forbidden", "union_tag_invalid", "literal_error"})
"""Faults of a field or a value that the public API may have and no engine behind us gets."""


class Message(Identified):
    """A message of anybody."""

    type: Annotated[Literal["message"], WithJsonSchema({"enum": ["message", None]})] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content; a string is one text."""
        if isinstance(self.content, str):
            return (InputText(type="input_text", text=self.content),)
        return self.content


class SummaryText(Given):
    """A part of a summary of reasoning."""

    type: Literal["summary_text"]
    text: str


class ReasoningText(Given):
    """A part of the reasoning itself."""

    type: Literal["reasoning_text"]
    text: str


class Reasoning(Identified):
    """The model's reasoning before an answer."""

    type: Literal["reasoning"]
    summary: tuple[SummaryText, ...] = ()
    content: tuple[ReasoningText, ...] | None = None

    def text(self) -> str:
        """Return the reasoning, or what a summary has of it."""
        return "".join(part.text for part in self.content or ()) or "\n\n".join(part.text for part in self.summary)


class FileSearchCall(Given):
    """A search of an earlier response. The engine sees its answer, not its results."""

    type: Literal["file_search_call"]
    id: str | None = None
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] | None = None
    queries: tuple[str, ...] = ()
    results: tuple[Json, ...] | None = None


class ItemReference(Given):
    """An item of a stored response or of the conversation, by its id."""

    type: Literal["item_reference"]
    id: str


_MAY_REFER: Final = "input["
"""Where an item may be named by its id: what is kept in a conversation is the item itself."""
EngineItem: TypeAlias = Message | Reasoning | Call | Output
"""An item that an engine is sent."""
Item: TypeAlias = EngineItem | FileSearchCall | ItemReference
UnreadItem: TypeAlias = Annotated[JsonValue, ShownAs(Item)]


def by_type(*models: type[_Model]) -> dict[str, type[_Model]]:
    """Return the models by the one value of their field ``type``."""
    return {get_args(model.model_fields["type"].annotation)[0]: model for model in models}


ITEMS: Final[dict[str, type[Item]]] = by_type(Message, *CALLS, *OUTPUTS, Reasoning, FileSearchCall, ItemReference)
PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "file_search_call": "fs",
    "item_reference": "ref",
}
"""How the ids of items begin, by the item's type."""


def items_of(given: str | Sequence[JsonValue], field: str = "input") -> tuple[Item, ...]:
    """Return the items of a request's ``input``, or of another field; a string is one message of the user.

    Raises InvalidRequest (400) for an item or a field that engines cannot be given, Unprocessable for a malformed one.
    """
    if isinstance(given, str):
        return (Message(role="user", content=given),)
    return tuple(_item(value, f"{field}[{place}]") for place, value in enumerate(given))


def _item(value: JsonValue, place: str) -> Item:
    if not isinstance(value, dict):
        raise Unprocessable(f"{place} must be an object.", param=place)
    untyped = "item_reference" if value.keys() <= {"id", "type"} else "message" if "role" in value else None
    kind = untyped if value.get("type") is None else value["type"]
    model = ITEMS.get(kind) if isinstance(kind, str) else None
    if model is ItemReference and not place.startswith(_MAY_REFER):
        model = None
    if model is None:
        raise InvalidRequest(
            f"{place}: items of type {kind!r} are not supported. Supported are {', '.join(ITEMS)}.",
            param=f"{place}.type",
            code="unsupported_value",
        )
    return checked(model, {**value, "type": kind}, place)


def checked(model: type[_Model], fields: Json, place: str) -> _Model:
    """Validate an object of a request; unknown fields may be null. Raises InvalidRequest, Unprocessable."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        # an unknown field, else the fault of the branch of a union that fits best
        first = max(faults, key=lambda fault: (fault["type"] == "extra_forbidden", len(fault["loc"])))
        steps = [part for part in first["loc"] if part not in _TAGS and not str(part).startswith("tuple[")]
        param = place + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps)
        if first["type"] not in _NOT_OURS:
            code = first["type"] if first["type"] in LIMIT_CODES else None
            raise Unprocessable(f"{param}: {first['msg']}", param=param, code=code) from error
        if first["type"] == "extra_forbidden":
            raise InvalidRequest(f"{param} is not supported.", param=param, code="unsupported_parameter") from error
        raise InvalidRequest(f"{param}: {first['msg']}", param=param, code="unsupported_value") from error


_TAGS: Final = frozenset({"str", "input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"})
"""The names of a union's branches in the place of a fault."""


_SHORT_BYTES: Final = 4096
# fmt: off
_NO_TEXT: Final = frozenset((
    "id", "type", "object", "role", "status", "model", "call_id", "previous_response_id", "encrypted_content",
    "image_url", "file_id", "file_data", "file_url", "signature", "tools", "tool_choice", "memory",
))
# fmt: on


async def redacted(objects: Sequence[Json], keeper: Keeper, scope: Scope) -> list[Json]:
    """Return items, or responses, redacted as the user's policies ask. Raises Unavailable without them."""
    redactions = await keeper.redactions(scope.tenant, [scope])
    clean, redact = await redacted_by(redactions, objects, scope)
    redactions.counted(redact)
    return clean


async def redacted_by(redactions: Redactions, objects: Sequence[Json], scope: Scope) -> tuple[list[Json], Redaction]:
    """Return the same by these policies, and the redaction, whose counts are not yet added to the metrics."""
    redact = redactions.of(scope)
    if not redact.is_active:
        return [*objects], redact
    work = partial(redacted_json, [*objects], redact, skip=_NO_TEXT)
    here = False
    if redact.is_by_rules:
        with suppress(orjson.JSONEncodeError):  # nested too deeply
            here = len(orjson.dumps(objects)) <= _SHORT_BYTES  # a thread would take longer than the rules do
    clean = work() if here else await asyncio.to_thread(work)
    return cast("list[Json]", clean), redact


def named_items(items: Iterable[Item], digits: str) -> list[Json]:
    """Return items of an input as JSON, each with a status, and with an id of these digits if it has none."""
    found: list[Json] = []
    for place, item in enumerate(items):
        fields: Json = {"id": f"{PREFIXES[item.type]}_{digits}i{place:04x}", "status": "completed"}
        fields |= item.model_dump(mode="json", exclude_none=True)
        if item.type == "message" and isinstance(item.content, str):
            kind = "output_text" if item.role == "assistant" else "input_text"
            fields["content"] = [{"type": kind, "text": item.content}]
        found.append(fields)
    return found
