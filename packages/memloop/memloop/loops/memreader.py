"""MemReader: decides what to remember of a piece of conversation. Source: arXiv 2604.07877.

The form is the profile's, or chosen by what has worked (:mod:`memloop.loops.forms`): a model that calls tools (here),
or one that lists memories as JSON, with no search and no buffer (:mod:`memloop.loops.extractor`).

Each turn of the model is one tool call. A search is run and its result shown to the model, which goes on; to add, to
buffer or to ignore ends the loop. The loop only searches: its host applies the decision.

A reply without a valid call is data, not an exception. The loop shows the model the fault and asks once more. If the
second reply fails too, the decision is InvalidOutput and the host keeps the turns. Where another form is left, a reply
without any call is not repaired: the model is asked in the next form.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from memloop.loops.extractor import extract
from memloop.loops.forms import (
    TOOL_FORMS,
    AddMemory,
    Asked,
    BufferMemory,
    Form,
    Forms,
    InvalidArguments,
    SearchMemory,
    Tool,
    check_calls,
    ladder_of,
    may_refuse_form,
)
from memloop.loops.parsing.json_values import ParsePath, json_values
from memloop.loops.parsing.written_calls import Call, problem_of, written_calls
from memloop.loops.relating import SHOWN_CHARS
from memloop.loops.rendering import conversation_lines, listen, memory_lines, rejected_reply, sealed
from memloop.loops.results import AddMemories, BufferTurns, Decision, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.loops.steps import DecideStep, MemorySearched, OutputRejected
from memloop.ports import ChatModel, Completion, MemoryIndex, Recalled, Report
from memloop.profiles import Profile, neutralise, well_formed
from memloop.wire.chat import ChatMessage, FunctionCall, Json, ToolCall
from memloop.wire.errors import EngineError
from memloop.wire.memory import Source, Usage
from memloop.wire.memory_events import DecisionRecord

SEARCH_TOP_K = 5
REPAIRS = 1
_CUT = "the reply was cut off; write less"
_NOT_NOW = "buffer_memory: these turns have waited long enough; add what is worth keeping, or ignore them"


async def decide(
    turns: Sequence[Source],
    *,
    model: ChatModel,
    index: MemoryIndex,
    profile: Profile,
    max_turns: int = 4,
    may_buffer: bool = True,
    report: Report[DecideStep] | None = None,
    forms: Forms | None = None,
) -> DecisionResult:
    """Decide on the turns, oldest first. The model may search ``max_turns`` times; then it must decide.

    With ``may_buffer`` false the turns are settled now: a model that buffers them gets one repair. If it insists, that
    is its decision, and the host keeps the turns. Costs at most ``max_turns`` + 2 calls: the searches, one repair, the
    decision; turns none of which the profile shows are ignored without a call. ``forms`` is what is known of the model:
    with it, a form that fails is followed by another one in place of the repair; without it the form is the profile's
    own. Raises ValueError without turns, and what model and index do.
    """
    if not turns:
        raise ValueError("there are no turns to decide on")
    if not any(profile.turns.shows(turn) for turn in turns):
        unread = IgnoreTurns("the writer reads no turn of these roles")
        return DecisionResult(unread, (DecisionRecord(action=unread.action, reason=unread.reason),), Usage())
    left = ladder_of(profile)[:1] if forms is None else forms.left(profile)
    results: dict[Form, DecisionResult] = {}
    refused: dict[Form, EngineError] = {}
    for form in left:
        last = form == left[-1] or bool(results)
        asked = Asked(
            form,
            repairs=len(left) == 1,
            mends=forms is None or forms.mends(form) or len(left) == 1,
            last=last,
            searches=max_turns,
            may_buffer=may_buffer,
        )
        ask = _by_tools if form in TOOL_FORMS else extract
        try:
            result = results[form] = await ask(asked, turns, model=model, index=index, profile=profile, report=report)
        except EngineError as error:
            if not may_refuse_form(error):
                raise
            refused[form] = error
            if form == left[-1] and not results:
                try:
                    raise next(iter(refused.values()))
                finally:
                    refused.clear()  # its traceback holds this frame: both would stay until the next collection
            continue
        bad = sum(record.action == "invalid" for each in results.values() for record in each.records)
        too_long = isinstance(result.decision, InvalidOutput) and result.decision.cut and len(turns) > 1
        if not isinstance(result.decision, InvalidOutput) or bad > REPAIRS or too_long:
            break  # of fewer turns the reply is shorter: the host divides them
    *failed, last = results
    result = results[last]
    usable = not isinstance(result.decision, InvalidOutput)
    if forms is not None:
        forms.decided(last if usable else None, failed=failed if usable else [*failed, last], refused=[*refused])
    refused.clear()
    return replace(
        result,
        records=tuple(record for each in results.values() for record in each.records),
        usage=sum((each.usage for each in results.values()), start=Usage()),
    )


async def _by_tools(
    asked: Asked,
    turns: Sequence[Source],
    *,
    model: ChatModel,
    index: MemoryIndex,
    profile: Profile,
    report: Report[DecideStep] | None,
) -> DecisionResult:
    """Hold the dialogue of tools. Where ``asked`` says so, the model may repair its reply once."""
    dialogue = _Dialogue(turns, profile, asked)
    while True:
        attempt = await dialogue.ask(model)
        problem = dialogue.problem_of(attempt)
        if problem and not dialogue.repaired and (asked.repairs or (asked.mends and attempt.call.begun)):
            dialogue.show_problem(attempt, problem)
            if report:
                await report(OutputRejected(problem, attempt.raw, attempt.record, attempt.usage))
        elif isinstance(attempt.tool, SearchMemory) and dialogue.searches < asked.searches:
            found = tuple(await index.search(attempt.tool.query, top_k=SEARCH_TOP_K))
            dialogue.show_found(attempt, found)
            if report:
                await report(MemorySearched(attempt.tool.query, found, attempt.record, attempt.usage))
        else:
            decision = attempt.decision
            if report:
                await report(asked.ended(decision, attempt.record, attempt.usage, repaired=dialogue.repaired))
            return DecisionResult(decision, tuple(dialogue.records), dialogue.usage)


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call whose arguments are an unchecked JSON object. ``others`` are the further calls of the same reply."""

    name: str
    arguments: Json
    path: ParsePath
    others: tuple[Call, ...] = ()
    begun: ClassVar[bool] = True

    @property
    def all(self) -> tuple[Call, ...]:
        """The calls of the reply, in its order, each with its arguments."""
        return (self.name, self.arguments), *self.others


@dataclass(frozen=True, slots=True)
class NoCall:
    """The reply holds no readable call; ``problem`` is the reason, for the model and the record.

    ``begun``: it holds the beginning of one, or one in another form.
    """

    problem: str
    begun: bool = False


def find_call(completion: Completion) -> FoundCall | NoCall:
    """Return the reply's tool calls, by whichever path they came.

    Engines lose calls: inside ``<think>``, or as an empty list under ``tool_choice: required``; and models whose
    template does not show tools write them as text. So a call is looked for among the engine's own ``tool_calls``
    (native), then in the text and in the thinking (:mod:`memloop.loops.parsing.written_calls`).
    """
    if completion.tool_calls:
        return _native(completion.tool_calls)
    spoken = listen(completion)
    found = written_calls(spoken.text, spoken.reasoning)
    if found is None:
        problem, begun = problem_of(spoken.text)
        return NoCall(problem, begun=begun)
    (first, *others), path = found
    return FoundCall(*first, path, tuple(others))


def _native(calls: tuple[ToolCall, ...]) -> FoundCall | NoCall:
    path: ParsePath = "native"
    found: list[Call] = []
    for function in (call.function for call in calls):
        try:
            arguments: object = json.loads(function.arguments)
        except (ValueError, RecursionError):
            arguments, path = function.arguments, "repaired"
        if isinstance(arguments, str):  # JSON behind prose or fences, or as a text in JSON
            arguments, path = next((each.value for each in json_values(arguments)), None), "repaired"
        if not isinstance(arguments, dict):
            return NoCall(f"the arguments of {function.name} are not a JSON object", begun=True)
        found.append((function.name, cast(Json, arguments)))
    return FoundCall(*found[0], path, tuple(found[1:]))


class _Attempt:
    """One reply of the model, understood as far as it goes: a tool, or a problem."""

    def __init__(self, completion: Completion) -> None:
        spoken = listen(completion)
        self.call: FoundCall | NoCall = find_call(completion)
        self.reasoning = spoken.reasoning
        self.usage = completion.usage
        self.cut = completion.finish_reason == "length"
        calls = (f"{call.function.name} {call.function.arguments}" for call in completion.tool_calls)
        self.raw = spoken.text or well_formed("\n".join(calls))
        native = completion.tool_calls[0] if completion.tool_calls else None
        self.call_id = (native.id if native else "") or "call_0"
        self._native = native or ToolCall(function=FunctionCall(name=""))
        self.tool: Tool | None = None
        self.problem = self._mended = self._ignored = ""
        if isinstance(self.call, NoCall):
            self.problem = self.call.problem
            return
        try:
            self.tool, mended, ignored = check_calls(self.call.all)
        except InvalidArguments as error:
            self.problem = well_formed(str(error))
            return
        self._mended = well_formed(mended)
        if ignored:
            self._ignored = f"{ignored} further tool call(s) in the same reply were not executed"

    @property
    def decision(self) -> Decision:
        """What the reply means where the dialogue ends with it."""
        match self.tool:
            case None:
                return InvalidOutput(self.problem, self.raw, cut=self.cut)
            case SearchMemory():
                return InvalidOutput("turn cap: it searched again where it had to decide", self.raw)
            case AddMemory(memory_list=drafts, summary=summary):
                return AddMemories(tuple(draft.to_wire() for draft in drafts), summary)
            case BufferMemory(reason=reason):
                return BufferTurns(reason)
            case ignored:
                return IgnoreTurns(ignored.reason)

    @property
    def record(self) -> DecisionRecord:
        """The turn as it is kept for the user to see."""
        return DecisionRecord(
            action=self.tool.action if self.tool else "invalid",
            reason=self.tool.reason if self.tool else self.problem,
            reasoning=self.reasoning,
            query=self.tool.query if isinstance(self.tool, SearchMemory) else None,
            parse_path=("repaired" if self._mended else self.call.path)
            if isinstance(self.call, FoundCall)
            else "failed",
            note="; ".join(note for note in (self._ignored, self._mended) if note),
        )

    def echo(self) -> ChatMessage:
        """Return the reply as the conversation keeps it: its first call, or the text that held none."""
        if isinstance(self.call, NoCall):
            return rejected_reply(self.raw)
        arguments = json.dumps(self.call.arguments, ensure_ascii=False)
        function = FunctionCall(name=sealed(self.call.name), arguments=sealed(arguments))
        return ChatMessage.model_validate(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": (self._native.model_copy(update={"id": self.call_id, "function": function}),),
                "reasoning_content": self.reasoning or None,
            }
        )


class _Dialogue:
    """The conversation with the memory writer, and what it cost."""

    def __init__(self, turns: Sequence[Source], profile: Profile, asked: Asked) -> None:
        self._profile = profile
        self._asked = asked
        self._messages = profile.render("memory", conversation=conversation_lines(turns, profile.turns))
        self.repaired = False
        self.searches = 0
        self.records: list[DecisionRecord] = []
        self.usage = Usage()

    async def ask(self, model: ChatModel) -> _Attempt:
        prompt = self._profile.request("memory", self._messages)
        if self._asked.form == "forced_tools":
            prompt = replace(prompt, tool_choice="required")
        completion = await model.complete(prompt)
        attempt = _Attempt(completion)
        self.records.append(attempt.record)
        self.usage += completion.usage
        return attempt

    def problem_of(self, attempt: _Attempt) -> str:
        """Why the reply cannot be taken; empty when it can."""
        if isinstance(attempt.tool, BufferMemory) and not self._asked.may_buffer:
            return _NOT_NOW
        if attempt.cut and attempt.record.parse_path == "repaired":
            return _CUT
        return attempt.problem

    def show_problem(self, attempt: _Attempt, problem: str) -> None:
        self.repaired = True
        text = f"Not a valid call: {neutralise(problem)}. Nothing was done. Call exactly one tool."
        self._go_on(attempt, text, role="user" if isinstance(attempt.call, NoCall) else "tool")

    def show_found(self, attempt: _Attempt, found: Sequence[Recalled]) -> None:
        self.searches += 1
        shown = [replace(each, text=each.text[:SHOWN_CHARS]) for each in found]
        lines = memory_lines(shown, nothing=self._profile.no_results, line=self._profile.result_line)
        self._go_on(attempt, lines, role="tool")

    def _go_on(self, attempt: _Attempt, text: str, *, role: str) -> None:
        call_id = attempt.call_id if role == "tool" else None
        self._messages += (attempt.echo(), ChatMessage(role=role, content=text, tool_call_id=call_id))
