"""The memory writer's four tools as the loop checks them; what the model sees is the profile's ``tools.json``."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memloop.loops.parsing.json_values import entries_in, entry_of, is_entry
from memloop.wire.chat import Json
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryDraft
from memloop.wire.memory_events import Action

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARS)]
_Tag = Annotated[str, StringConstraints(strip_whitespace=True, max_length=256)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TEXT_CHARS)]
_MOST_DRAFTS = 100
_ADD: Final = "add_memory"
_SEARCH: Final = "search_memory"
_RAW: Final = "RawTurn"
"""The type of the store's own records, which no model may write."""
_KEY_CHARS: Final = 128


class InvalidArguments(ValueError):
    """An unknown tool, or arguments that do not fit it; the text is fit to show to the model."""


class _Arguments(BaseModel):
    """The arguments of a tool. Unknown ones are dropped, because they do no harm."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SearchMemory(_Arguments):
    """Searches the stored memories before a decision."""

    action: ClassVar[Action] = "search"
    reason: ClassVar[str] = ""
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

    action: ClassVar[Action] = "add"
    memory_list: tuple[Draft, ...] = Field(min_length=1, max_length=_MOST_DRAFTS)
    summary: _Reason

    @property
    def reason(self) -> str:
        """The summary."""
        return self.summary


class BufferMemory(_Arguments):
    """Wait for the next turns."""

    action: ClassVar[Action] = "buffer"
    reason: _Reason


class IgnoreMemory(_Arguments):
    """Store nothing."""

    action: ClassVar[Action] = "ignore"
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
    """The valid entries of a memory list, the number of the others, and the first fault: entry, field and reason.

    ``mended`` of the valid ones lacked a key, a type or tags, or had them in another form.
    """

    drafts: tuple[Draft, ...] = ()
    dropped: int = 0
    fault: str = ""
    mended: int = 0


def check_drafts(entries: list[object]) -> CheckedDrafts:
    """Checks each entry of a memory list by itself. Entries past the hundredth are dropped."""
    drafts: list[Draft] = []
    faults: list[str] = []
    mended = 0
    for number, entry in enumerate(entries[:_MOST_DRAFTS]):
        try:
            drafts.append(Draft.model_validate(entry))
        except ValidationError as error:
            try:
                drafts.append(Draft.model_validate(_mended(entry)))
                mended += 1
            except ValidationError:
                faults.append(f"{number}.{_first_fault(error)}")
    faults.append(f"there are more than {_MOST_DRAFTS}")
    return CheckedDrafts(tuple(drafts), len(entries) - len(drafts), faults[0], mended)


def check_call(name: str, arguments: Json) -> tuple[Tool, str]:
    """Validate a call; return its tool, and a note of what was mended: the tool's name, its memories or a reason.

    Raises InvalidArguments, which names the tool, the field and the fault.
    """
    meant = _meant(name)
    if meant is None:
        raise InvalidArguments(f"there is no tool {name[:64]!r}; the tools are {', '.join(_TOOLS)}")
    notes = [] if meant == name else [f"{name[:64]!r} was taken for {meant}"]
    try:
        return _TOOLS[meant].model_validate(arguments), "; ".join(notes)
    except ValidationError as error:
        fault = f"{meant}: {_first_fault(error)}"
    listed = entries_in(arguments)
    if listed is None and is_entry(arguments):
        listed = list[object]([arguments])
    checked = check_drafts(listed) if meant == _ADD and listed else CheckedDrafts()
    reason = {"reason": "", "summary": "", **arguments}
    try:
        if meant == _ADD and not checked.drafts:
            raise InvalidArguments(fault)
        drafts = {"memory_list": checked.drafts} if meant == _ADD else {}
        tool = _TOOLS[meant].model_validate(reason | drafts)
    except ValidationError:
        raise InvalidArguments(fault) from None
    left_out = f", {checked.dropped} left out" if checked.dropped else ""
    return tool, "; ".join([*notes, f"mended: {fault}{left_out}"])


def check_calls(calls: Sequence[tuple[str, Json]]) -> tuple[Tool, str, int]:
    """Validate the calls of one reply; return the tool to run, ``check_call``'s note, and how many calls do not count.

    Memories that several calls add come together. Else the first call counts; a search in front comes before any
    decision. Raises InvalidArguments for a fault in a call that counts.
    """
    adding = [call for call in calls if _meant(call[0]) == _ADD]
    counting = adding if adding and _meant(calls[0][0]) != _SEARCH else calls[:1]
    checked = [check_call(*call) for call in counting]
    mended, ignored = "; ".join(note for _, note in checked if note), len(calls) - len(counting)
    added = [tool for tool, _ in checked if isinstance(tool, AddMemory)]
    if len(added) < 2:
        return checked[0][0], mended, ignored
    drafts = list(dict.fromkeys(draft for tool in added for draft in tool.memory_list))
    summary = "; ".join(dict.fromkeys(tool.summary for tool in added if tool.summary))
    return AddMemory(memory_list=tuple(drafts[:_MOST_DRAFTS]), summary=summary[:MAX_TEXT_CHARS]), mended, ignored


def _meant(name: str) -> str | None:
    """Return the tool that a name means: in another case or notation, behind a namespace, or nearly spelt so."""
    if name in _TOOLS:
        return name
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rsplit(".", 1)[-1].rsplit(":", 1)[-1]).lower().replace("-", "_")
    turned = "_".join(reversed(snake.split("_")))
    close = difflib.get_close_matches(snake[:64], _TOOLS, n=1, cutoff=0.8)
    return next((each for each in (snake, turned, *close) if each in _TOOLS), None)


def _mended(entry: object) -> object:
    """Return a memory with what it lacks: its text may stand alone, under another name or in another form."""
    fields = entry_of(entry)
    text, key, kind, tags = (fields.get(name) for name in ("value", "key", "memory_type", "tags"))
    if isinstance(tags, str):
        tags = [tag for tag in tags.split(",") if tag.strip()]
    return {
        "key": key if isinstance(key, str) and key.strip() else str(text or "")[:_KEY_CHARS],
        "value": text,
        "memory_type": kind if kind in ("LongTermMemory", "UserMemory", _RAW) else "LongTermMemory",
        "tags": [tag for tag in cast(list[object], tags) if isinstance(tag, str)] if isinstance(tags, list) else [],
    }


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}"
