"""The forms in which a memory writer is asked and answers, the tools among them, and which worked with its model.

Models differ in what they can do, and engines in what they take: tools that may be called (``tools``) or must be
(``forced_tools``), JSON that the engine holds to a schema (``json_schema``), JSON that is asked for in words
(``json``), or lines (``lines``). A profile's own words for the writer fix the form. A profile that also has words for
JSON (``extract``) gives a ladder: a reply without a usable call, or an engine that refuses the request, steps to the
next form, and a model that has failed in a form is asked in the next one from then on. One decision costs at most two
bad replies, so what it could not try is tried by the next one.

The tools are checked here; what the model sees of them is the profile's ``tools.json``.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memloop.loops.parsing.json_values import entries_in, entry_of, is_entry
from memloop.loops.results import Decision, InvalidOutput
from memloop.loops.steps import Decided, DecideStep, OutputRejected
from memloop.profiles import Profile
from memloop.wire.chat import Json
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryDraft, Usage
from memloop.wire.memory_events import Action, DecisionRecord

Form: TypeAlias = Literal["tools", "forced_tools", "json_schema", "json", "lines"]
TOOL_FORMS: Final[frozenset[Form]] = frozenset({"tools", "forced_tools"})

_FAILURES: Final = 2
"""Decisions in a row that a form may fail before it is left: one bad reply may be chance."""
_LOOKS_BACK_AFTER: Final = 100
"""Decisions after which the first form is tried again: the model behind a name may have changed."""
_OF_THE_REQUEST: Final = frozenset({400, 422})
_BY_WORDS: Final = frozenset({404, 405, 415, 500, 501})
_NAMES_THE_FORM: Final = re.compile(
    r"\btools?\b|function|tool_|jinja|template|grammar|schema|response.?format|structured", re.IGNORECASE
)


def ladder_of(profile: Profile) -> tuple[Form, ...]:
    """Return the forms in which the profile can ask, the one of its own words first."""
    memory = profile.prompts["memory"]
    if memory.parser == "memory_lines":
        return ("lines",)
    if memory.parser == "memory_list":
        return ("json_schema", "json") if memory.reply else ("json",)
    tools: tuple[Form, ...] = ("forced_tools",) if memory.tool_choice == "required" else ("tools", "forced_tools")
    extract = profile.prompts.get("extract")
    if extract is None:
        return tools[:1]
    json: tuple[Form, ...] = ("json_schema", "json") if extract.reply else ("json",)
    return (*tools, *json)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a writer is asked: the form, and whether it is the ``last`` one of this decision.

    ``repairs``: any reply that cannot be taken is shown to the model with the fault, once; ``mends``: one that holds a
    call with faults. ``searches``: the most searches before the decision.
    """

    form: Form
    repairs: bool
    mends: bool
    last: bool
    searches: int
    may_buffer: bool

    def ended(self, decision: Decision, record: DecisionRecord, usage: Usage, *, repaired: bool) -> DecideStep:
        """Return the step with which this form ends: a decision, unless it failed and another form follows."""
        if isinstance(decision, InvalidOutput) and not (self.last or repaired):
            return OutputRejected(decision.problem, decision.raw, record, usage)
        return Decided(decision, record, usage)


class Forms:
    """The forms that have worked with one model, and those that have not; a few numbers, whatever happens.

    A form is left once another one worked where it failed, twice in a row. Where no form worked the turns may be at
    fault: no form is left, and the next decision tries those that were tried least. ``tools`` is False for a model
    whose chat template is known to show none.
    """

    def __init__(self, *, tools: bool = True) -> None:
        self._tools = tools
        self._failures = Counter[Form]()
        self._in_vain = Counter[Form]()
        self._decisions = 0

    def left(self, profile: Profile) -> tuple[Form, ...]:
        """Return the forms to ask in, at least one: the profile's own unless it failed, then the least in vain."""
        ladder = ladder_of(profile)
        without: tuple[Form, ...] = tuple(form for form in ladder if form not in TOOL_FORMS)
        known = ladder if self._tools else without or ladder
        good: tuple[Form, ...] = tuple(form for form in known if self._failures[form] < _FAILURES) or known[-1:]
        own = good[:1] if good[0] == known[0] else ()
        return (*own, *sorted(good[len(own) :], key=lambda form: self._in_vain[form]))

    def mends(self, form: Form) -> bool:
        """Return whether a call with faults is worth a repair: not where the last one was in vain."""
        return self._in_vain[form] == 0

    def decided(self, worked: Form | None, *, failed: Iterable[Form], refused: Iterable[Form]) -> None:
        """Note a decision: the form of its usable reply, if any, those that failed, and those that the engine refused
        while it answered in another.
        """
        self._decisions += 1
        if self._decisions % _LOOKS_BACK_AFTER == 0:
            self._failures.clear()
        self._failures.update(dict.fromkeys(refused, _FAILURES))
        self._in_vain.update(failed)
        if worked is not None:
            self._failures.update(failed)
            self._failures[worked] = self._in_vain[worked] = 0


def may_refuse_form(error: EngineError) -> bool:
    """Return whether the engine may have refused the form of the request: not its length, its key or its rate."""
    if error.code == CONTEXT_LENGTH_EXCEEDED:
        return False
    if error.engine_status in _OF_THE_REQUEST:
        return True
    return error.engine_status in _BY_WORDS and _NAMES_THE_FORM.search(error.message) is not None


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
        return MemoryDraft(**dict(self))


class AddMemory(_Arguments):
    """Store lasting facts."""

    action: ClassVar[Action] = "add"
    memory_list: tuple[Draft, ...] = Field(min_length=1, max_length=_MOST_DRAFTS)
    summary: _Reason

    @property
    def reason(self) -> str:
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
