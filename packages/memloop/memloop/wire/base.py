"""The two bases of all wire models: ours refuse unknown fields, OpenAI's keep them.

Neither quotes in an error what it was given: errors are logged, users' texts are not.
"""

from typing import Final

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _integral(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integral: Final = BeforeValidator(_integral)
"""In ``Annotated[int, …]``: ``8.0`` is an integer, as JSON Schema 2020-12 (validation, section 6.1.1) has it."""


class Wire(BaseModel):
    """A frozen model of our own; an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True, hide_input_in_errors=True
    )


class OpenWire(BaseModel):
    """A frozen model of the OpenAI API; unknown fields pass through untouched."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)
