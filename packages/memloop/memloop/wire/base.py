"""The two bases of all wire models: ours refuse unknown fields, OpenAI's keep them."""

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """A frozen model of our own; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class OpenWire(BaseModel):
    """A frozen model of the OpenAI API; unknown fields pass through untouched."""

    model_config = ConfigDict(frozen=True, extra="allow")
