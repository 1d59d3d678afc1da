"""The memory writer's four tools as the loop checks them; what the model sees is the profile's ``tools.json``."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memloop.wire.chat import Json
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryDraft

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARS)]
_Tag = Annotated[str, StringConstraints(strip_whitespace=True, max_length=256)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TEXT_CHARS)]
_MOST_DRAFTS = 100


class InvalidArguments(ValueError):
    """An unknown tool, or arguments that do not fit it; the text is fit to show to the model."""


class _Arguments(BaseModel):
    """The arguments of a tool. Unknown ones are dropped, because they do no harm."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SearchMemory(_Arguments):
    """Searches the stored memories before a decision."""

    query: _Text


class Draft(_Arguments):
    """One memory of ``add_memory``; a model may not write raw turns."""

    key: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=512)]
    memory_type: Literal["LongTermMemory", "UserMemory"]
    value: _Text
    tags: tuple[_Tag, ...] = Field(max_length=64)

    def to_wire(self) -> MemoryDraft:
        """Convert the draft to the store's form."""
        return MemoryDraft(key=self.key, value=self.value, memory_type=self.memory_type, tags=self.tags)


class AddMemory(_Arguments):
    """Store lasting facts."""

    memory_list: tuple[Draft, ...] = Field(min_length=1, max_length=_MOST_DRAFTS)
    summary: _Reason


class BufferMemory(_Arguments):
    """Wait for the next turns."""

    reason: _Reason


class IgnoreMemory(_Arguments):
    """Store nothing."""

    reason: _Reason


Tool: TypeAlias = SearchMemory | AddMemory | BufferMemory | IgnoreMemory

_TOOLS: dict[str, type[Tool]] = {
    "search_memory": SearchMemory,
    "add_memory": AddMemory,
    "buffer_memory": BufferMemory,
    "ignore_memory": IgnoreMemory,
}


@dataclass(frozen=True, slots=True)
class CheckedDrafts:
    """The valid entries of a memory list, the number of the others, and the first fault: entry, field and reason."""

    drafts: tuple[Draft, ...] = ()
    dropped: int = 0
    fault: str = ""


def check_drafts(entries: list[object]) -> CheckedDrafts:
    """Checks each entry of a memory list by itself. Entries past the hundredth are dropped."""
    drafts: list[Draft] = []
    faults: list[str] = []
    for number, entry in enumerate(entries[:_MOST_DRAFTS]):
        try:
            drafts.append(Draft.model_validate(entry))
        except ValidationError as error:
            faults.append(f"{number}.{_first_fault(error)}")
    faults.append(f"there are more than {_MOST_DRAFTS}")
    return CheckedDrafts(tuple(drafts), len(entries) - len(drafts), faults[0])


def check_call(name: str, arguments: Json) -> Tool:
    """Validate a call and return its tool. Raises InvalidArguments, which names the tool, the field and the fault."""
    if name not in _TOOLS:
        raise InvalidArguments(f"there is no tool {name[:64]!r}; the tools are {', '.join(_TOOLS)}")
    try:
        return _TOOLS[name].model_validate(arguments)
    except ValidationError as error:
        raise InvalidArguments(f"{name}: {_first_fault(error)}") from error


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}"
