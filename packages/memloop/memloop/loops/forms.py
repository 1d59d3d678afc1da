"""The form in which a memory writer is asked, and the memory of the forms that have worked with its model.

Models differ in what they can do, and engines in what they take: tools that may be called (``tools``) or must be
(``forced_tools``), JSON that the engine holds to a schema (``json_schema``), JSON that is asked for in words
(``json``), or lines (``lines``). A profile's own words for the writer fix the form. A profile that also has words for
JSON (``extract``) gives a ladder: a reply without a usable call, or an engine that refuses the request, steps to the
next form, and a model that has failed in a form is asked in the next one from then on. One decision costs at most two
bad replies, so what it could not try is tried by the next one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memloop.loops.results import Decision, InvalidOutput
from memloop.loops.steps import Decided, DecideStep, OutputRejected
from memloop.profiles import Profile
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError
from memloop.wire.memory import Usage
from memloop.wire.memory_events import DecisionRecord

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
