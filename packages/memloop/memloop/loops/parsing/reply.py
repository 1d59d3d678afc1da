"""Parts a reply into its thinking, its speech and its tool calls.

Engines differ in who parts them, and models in how well they close a tag. Engines lose calls: inside ``<think>``, or as
an empty list under ``tool_choice: required``; and models whose template does not show tools write them as text. So a
call is looked for among the engine's own ``tool_calls`` (native), then in the text and in the thinking
(:mod:`memloop.loops.parsing.written_calls`).
"""

import json
from dataclasses import dataclass
from typing import ClassVar, cast

from memloop.loops.parsing.json_values import ParsePath, json_values
from memloop.loops.parsing.written_calls import Call, problem_of, written_calls
from memloop.ports import Completion
from memloop.profiles import well_formed
from memloop.wire.chat import Json, ToolCall

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply apart from its thinking, both stripped. ``finished``: the model itself ended it, thinking closed."""

    text: str
    reasoning: str
    finished: bool


def listen(completion: Completion) -> Spoken:
    """Return the speech and the thinking of a reply. Text is well-formed: no NUL, no lone surrogates."""
    text, thought, closed = split_thinking(well_formed(completion.content))
    reasoning = "\n".join(part for part in (well_formed(completion.reasoning).strip(), thought) if part)
    return Spoken(text, reasoning, finished=closed and completion.finish_reason in {"stop", "tool_calls"})


def as_written(completion: Completion) -> str:
    """Return the reply as the published loops take it: outer white space stays, unless thinking came before it."""
    text = well_formed(completion.content)
    return listen(completion).text if _OPEN in text or _CLOSE in text else text


def split_thinking(content: str) -> tuple[str, str, bool]:
    """(speech, thinking, closed) of a raw text.

    Speech is what follows the last ``</think>``; the opening tag may be missing, since chat templates put it into
    the prompt. A ``<think>`` that is still open after that swallows the rest: the model never came to speak.
    """
    before, mark, after = content.rpartition(_CLOSE)
    thinking = before.replace(_OPEN, "").replace(_CLOSE, "").strip() if mark else ""
    speech, opened, unfinished = after.partition(_OPEN)
    if opened:
        thinking = "\n".join(part for part in (thinking, unfinished.strip()) if part)
    return speech.strip(), thinking, not opened


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
    """Return the reply's tool calls, by whichever path they came."""
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
