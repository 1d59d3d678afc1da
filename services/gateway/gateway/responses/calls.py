"""The calls of the client's tools, and their outputs, as items of the Responses API.

Engines know calls of functions alone: any other call is carried as the call of a function (``responses.tools``).
Source: OpenAI API reference, "Responses".
"""

import hashlib
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from memloop.wire.base import Given, Integral
from memloop.wire.chat import Json
from memloop.wire.fields import MediaUrl
from memloop_service.http import json_text


class InputText(Given):
    """A text that goes to the model."""

    type: Literal["input_text"]
    text: str


class InputImage(Given):
    """An image, by URL or as a data URL."""

    type: Literal["input_image"]
    image_url: MediaUrl
    detail: Literal["auto", "low", "high", "original"] = "auto"


class InputFile(Given):
    """A file, as a data URL."""

    type: Literal["input_file"]
    file_data: str
    filename: str


class AudioData(Given):
    """Sound as base64."""

    data: str
    format: str


class InputAudio(Given):
    """Sound that goes to the model."""

    type: Literal["input_audio"]
    input_audio: AudioData


class OutputText(Given):
    """A text of the model. ``annotations`` and ``logprobs`` describe it; engines do not read them."""

    type: Literal["output_text"]
    text: str
    annotations: tuple[Json, ...] = ()
    logprobs: tuple[Json, ...] | None = None


class Refusal(Given):
    """The model's words where it refused to answer."""

    type: Literal["refusal"]
    refusal: str


Part: TypeAlias = Annotated[
    InputText | InputImage | InputFile | InputAudio | OutputText | Refusal, Field(discriminator="type")
]


Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]
Word: TypeAlias = Annotated[str, Field(min_length=1)]
Returned: TypeAlias = str | tuple[Annotated[InputText | InputImage | InputFile, Field(discriminator="type")], ...]
LOCAL_SHELL: Final = "local_shell"
TOOL_SEARCH: Final = "tool_search"
_LONGEST: Final = 64
"""The longest name of a function that OpenAI's endpoint accepts."""
_KEPT: Final = 55


def flat_name(name: str, namespace: str | None) -> str:
    """Return the name that the engine gets for a function of a namespace."""
    if not namespace:
        return name
    joined = f"{namespace}__{name}"
    if len(joined) <= _LONGEST:
        return joined
    return f"{joined[:_KEPT]}_{hashlib.sha256(joined.encode()).hexdigest()[:8]}"


class Caller(Given):
    """The model itself, and no program that it wrote."""

    type: Literal["direct"]


class Identified(Given):
    """What items have in common."""

    id: str | None = None
    status: Status | None = None


class _Called(Identified):
    """What all calls have. ``extra_content`` is an engine's own, and returns to it."""

    call_id: Word
    extra_content: JsonValue = None


class _Named(_Called):
    """A call of a tool that has a name."""

    name: Word
    namespace: str | None = None
    caller: Caller | None = None


class FunctionCall(_Named):
    """A call of one of the client's functions."""

    type: Literal["function_call"]
    arguments: str


class CustomToolCall(_Named):
    """A call of a tool whose input is a text."""

    type: Literal["custom_tool_call"]
    input: str


class ShellAction(Given):
    """The command that the client runs."""

    type: Literal["exec"] = "exec"
    command: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict[str, str])
    timeout_ms: Annotated[int, Field(strict=True), Integral] | None = None
    user: str | None = None
    working_directory: str | None = None


class LocalShellCall(_Called):
    """A command for the client's shell."""

    type: Literal["local_shell_call"]
    action: ShellAction


class ToolSearchCall(_Called):
    """A search for tools, which the client makes."""

    type: Literal["tool_search_call"]
    execution: Literal["client"]
    arguments: JsonValue


class _NamedOutput(Identified):
    """What a tool that has a name returned. ``name`` and ``namespace`` repeat the call's."""

    call_id: Word
    output: Returned
    name: str | None = None
    namespace: str | None = None
    caller: Caller | None = None


class FunctionCallOutput(_NamedOutput):
    """What a function returned."""

    type: Literal["function_call_output"]


class CustomToolCallOutput(_NamedOutput):
    """What a tool with a text for its input returned."""

    type: Literal["custom_tool_call_output"]


class LocalShellCallOutput(Given):
    """What the client's shell printed. ``id`` is the call's."""

    type: Literal["local_shell_call_output"]
    id: Word
    output: str
    status: Status | None = None

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.id


class ToolSearchOutput(Identified):
    """The tools that a search has found; from here on the model may call them."""

    type: Literal["tool_search_output"]
    call_id: Word
    execution: Literal["client"]
    tools: tuple[Json, ...]

    @property
    def output(self) -> str:
        """The names of the tools, for the model."""
        names = [str(tool.get("name")) for tool in self.tools]
        return json_text({"tools": list(names)}).decode()


Call: TypeAlias = FunctionCall | CustomToolCall | LocalShellCall | ToolSearchCall
Output: TypeAlias = FunctionCallOutput | CustomToolCallOutput | LocalShellCallOutput | ToolSearchOutput
CALLS: Final = (FunctionCall, CustomToolCall, LocalShellCall, ToolSearchCall)
OUTPUTS: Final = (FunctionCallOutput, CustomToolCallOutput, LocalShellCallOutput, ToolSearchOutput)
