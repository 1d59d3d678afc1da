"""The parts of a message of the Responses API."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Wire
from memloop.wire.chat import Json


class InputText(Wire):
    """A text that goes to the model."""

    type: Literal["input_text"]
    text: str


class InputImage(Wire):
    """An image, by URL or as a data URL."""

    type: Literal["input_image"]
    image_url: str
    detail: Literal["auto", "low", "high", "original"] = "auto"


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
