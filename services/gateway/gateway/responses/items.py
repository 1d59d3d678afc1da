"""The items of the Responses API that a conversation consists of: messages, function calls, their outputs, reasoning.

Unknown fields are refused, because no engine would receive them, unless they are null. Source: OpenAI
API reference, "Responses".
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError

from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]
_Model = TypeVar("_Model", bound=BaseModel)
_NOT_OURS: Final = frozenset({"extra_forbidden", "union_tag_invalid", "literal_error"})
"""Faults of a field or a value that the public API may have and no engine behind us gets."""


class InputText(Wire):
    """A text that goes to the model."""

    type: Literal["input_text"]
    text: str


class InputImage(Wire):
    """An image, by URL or as a data URL."""

    type: Literal["input_image"]
    image_url: str
    detail: Literal["auto", "low", "high"] = "auto"


class InputFile(Wire):
    """A file, as a data URL."""

    type: Literal["input_file"]
    file_data: str
    filename: str


class AudioData(Wire):
    """Sound as base64."""

    data: str
    format: str


class InputAudio(Wire):
    """Sound that goes to the model."""

    type: Literal["input_audio"]
    input_audio: AudioData


class OutputText(Wire):
    """A text of the model. ``annotations`` and ``logprobs`` describe it; engines do not read them."""

    type: Literal["output_text"]
    text: str
    annotations: tuple[Json, ...] = ()
    logprobs: tuple[Json, ...] | None = None


class Refusal(Wire):
    """The model's words where it refused to answer."""

    type: Literal["refusal"]
    refusal: str


Part: TypeAlias = Annotated[
    InputText | InputImage | InputFile | InputAudio | OutputText | Refusal, Field(discriminator="type")
]


class Message(Wire):
    """A message of anybody."""

    type: Literal["message"] = "message"
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | tuple[Part, ...]
    status: Status | None = None


class Caller(Wire):
    """The model itself, and no program that it wrote."""

    type: Literal["direct"]


class FunctionCall(Wire):
    """A call of one of the client's functions. ``extra_content`` is an engine's own, and returns to it."""

    type: Literal["function_call"]
    id: str | None = None
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str
    status: Status | None = None
    caller: Caller | None = None
    extra_content: JsonValue = None


class FunctionCallOutput(Wire):
    """What a function returned."""

    type: Literal["function_call_output"]
    id: str | None = None
    call_id: str = Field(min_length=1)
    output: str | tuple[InputText, ...]
    status: Status | None = None
    caller: Caller | None = None


class SummaryText(Wire):
    """A part of a summary of reasoning."""

    type: Literal["summary_text"]
    text: str


class ReasoningText(Wire):
    """A part of the reasoning itself."""

    type: Literal["reasoning_text"]
    text: str


class Reasoning(Wire):
    """The model's reasoning before an answer."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: tuple[SummaryText, ...] = ()
    content: tuple[ReasoningText, ...] | None = None
    status: Status | None = None

    def text(self) -> str:
        """Return the reasoning, or what a summary has of it."""
        return "".join(part.text for part in self.content or ()) or "\n\n".join(part.text for part in self.summary)


_OF_PARTS: Final = frozenset(
    name
    for model in (InputText, InputImage, InputFile, InputAudio, OutputText, Refusal, SummaryText, ReasoningText)
    for name in model.model_fields
)

Item: TypeAlias = Message | FunctionCall | FunctionCallOutput | Reasoning
ITEMS: Final[dict[str, type[Item]]] = {
    "message": Message,
    "function_call": FunctionCall,
    "function_call_output": FunctionCallOutput,
    "reasoning": Reasoning,
}
PREFIXES: Final = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
"""How the ids of items begin, by the item's type."""


def items_of(given: str | Sequence[JsonValue]) -> tuple[Item, ...]:
    """Return the items of a request's ``input``; a string is one message of the user.

    Raises InvalidRequest (400) for an item or a field that engines cannot be given, Unprocessable for a malformed one.
    """
    if isinstance(given, str):
        return (Message(role="user", content=given),)
    return tuple(_item(value, f"input[{place}]") for place, value in enumerate(given))


def _item(value: JsonValue, place: str) -> Item:
    if not isinstance(value, dict):
        raise Unprocessable(f"{place} must be an object.", param=place)
    kind = value.get("type", "message" if "role" in value else None)
    model = ITEMS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise InvalidRequest(
            f"{place}: items of type {kind!r} are not supported. Supported are {', '.join(ITEMS)}.",
            param=f"{place}.type",
            code="unsupported_value",
        )
    return checked(model, {**value, "type": kind}, place)


def checked(model: type[_Model], fields: Json, place: str) -> _Model:
    """Validate an object of a request; unknown fields may be null. Raises InvalidRequest, Unprocessable."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    try:
        return model.model_validate(_without_unknown_nulls(fields, known))
    except ValidationError as error:
        raise _fault(error, place) from error


def _fault(error: ValidationError, place: str) -> InvalidRequest:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    # an unknown field, else the fault of the branch of a union that fits best
    first = max(faults, key=lambda fault: (fault["type"] == "extra_forbidden", len(fault["loc"])))
    param = "".join(_steps(place, first["loc"]))
    if first["type"] not in _NOT_OURS:
        return Unprocessable(f"{param}: {first['msg']}", param=param)
    if first["type"] == "extra_forbidden":
        return InvalidRequest(f"{param} is not supported.", param=param, code="unsupported_parameter")
    return InvalidRequest(f"{param}: {first['msg']}", param=param, code="unsupported_value")


def _steps(place: str, loc: Sequence[str | int]) -> Iterator[str]:
    yield place
    for part in loc:
        if isinstance(part, int):
            yield f"[{part}]"
        elif not part.startswith("tuple[") and part not in _TAGS:
            yield f".{part}" if place else part


_TAGS: Final = frozenset({"str", "input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"})
"""The names of a union's branches in the place of a fault."""


def _without_unknown_nulls(value: Json, known: Collection[str]) -> Json:
    return {name: _cleaned(inner) for name, inner in value.items() if inner is not None or name in known}


def _cleaned(value: JsonValue) -> JsonValue:
    """Clean the objects in a list, such as the parts of a message."""
    if isinstance(value, list):
        return [_without_unknown_nulls(part, _OF_PARTS) if isinstance(part, dict) else part for part in value]
    return value
