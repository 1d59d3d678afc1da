"""The passive memory writer: one reply lists what to remember, with no tools and no search. Source: MemReader-0.6B.

It looks nothing up; whether a fact is new, the store decides. The list is a JSON object, or lines that a small model
writes more easily; in lines it may also wait for more turns. A reply that cannot be read is treated as in
:mod:`memloop.loops.memreader`: one repair, then InvalidOutput.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from memloop.loops.forms import Asked, CheckedDrafts, Draft, check_drafts
from memloop.loops.parsing.memory_list import FoundList, NoList, find_memory_lines, find_memory_list
from memloop.loops.rendering import conversation_lines, listen, rejected_reply
from memloop.loops.results import AddMemories, BufferTurns, Decision, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.loops.steps import DecideStep, OutputRejected
from memloop.ports import ChatModel, Completion, MemoryIndex, Report
from memloop.profiles import Profile, PromptName, neutralise, well_formed
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import Source, Usage
from memloop.wire.memory_events import DecisionRecord

_CUT = "the reply was cut off; list less"
_NOTHING = "nothing worth keeping"
_UNFINISHED = "a fact is not finished yet"
_NOT_NOW = "no more turns follow"
_WORD = re.compile(r"\w+")
_SAYING = 4
"""Letters of a word that says something by itself."""
_ROLES = frozenset({"user", "assistant"})


async def extract(
    asked: Asked,
    turns: Sequence[Source],
    *,
    model: ChatModel,
    index: MemoryIndex,
    profile: Profile,
    report: Report[DecideStep] | None,
) -> DecisionResult:
    """Extracts the memories of the turns, oldest first; an empty list ignores them. Searches nothing in the index.

    Unless it may buffer, a model that would wait for more turns is asked once more. Only in the form ``json_schema``
    the engine may hold the reply to a schema. Costs at most two calls: a list that was cut is asked for once more, a
    reply that cannot be read where ``asked`` says so. Raises what the model raises.
    """
    del index
    name: PromptName = "extract" if profile.prompts["memory"].parser == "tool_call" else "memory"
    lines = asked.form == "lines"
    messages = profile.render(name, conversation=conversation_lines(turns, profile.turns))
    told, said = (
        " ".join(message.text() for message in messages if (message.role == "system") is told) for told in (True, False)
    )
    read = partial(_understood, lines=lines, may_buffer=asked.may_buffer, instructions=told, said=said)

    async def reply_to(*repair: ChatMessage) -> _Understood:
        prompt = profile.request(name, (*messages, *repair))
        return read(await model.complete(prompt if asked.form == "json_schema" else replace(prompt, reply=None)))

    replies = [first := await reply_to()]
    if first.rejected is not None and (asked.repairs or not isinstance(first.decision, InvalidOutput)):
        if report:
            await report(OutputRejected(first.rejected.problem, first.rejected.raw, first.record, first.usage))
        form = 'lines "topic: fact", "none" or "wait"' if lines else "the JSON object"
        text = f"Not usable: {neutralise(first.rejected.problem)}. Nothing was stored. Reply with {form} alone."
        replies.append(await reply_to(rejected_reply(first.rejected.raw), ChatMessage(role="user", content=text)))
    taken = next((reply for reply in reversed(replies) if not isinstance(reply.decision, InvalidOutput)), replies[-1])
    if report:
        await report(asked.ended(taken.decision, taken.record, taken.usage, repaired=len(replies) > 1))
    return DecisionResult(
        taken.decision,
        records=tuple(reply.record for reply in replies),
        usage=sum((reply.usage for reply in replies), start=Usage()),
        dropped=taken.dropped,
    )


@dataclass(frozen=True, slots=True)
class _Understood:
    """One reply of the model. ``rejected``: why it asks for another one, be it usable or not."""

    decision: Decision
    record: DecisionRecord
    usage: Usage
    dropped: int = 0
    rejected: InvalidOutput | None = None


def _understood(completion: Completion, *, lines: bool, may_buffer: bool, instructions: str, said: str) -> _Understood:
    spoken = listen(completion)
    found = find_memory_lines(completion) if lines else find_memory_list(completion)
    if found is None:
        waits = BufferTurns(_UNFINISHED)
        record = DecisionRecord(
            action=waits.action, reason=waits.reason, reasoning=spoken.reasoning, parse_path="native"
        )
        too_late = None if may_buffer else InvalidOutput(_NOT_NOW, spoken.text)
        return _Understood(waits, record, completion.usage, rejected=too_late)
    checked = CheckedDrafts() if isinstance(found, NoList) else _own(check_drafts(found.entries), instructions, said)
    cut = completion.finish_reason == "length"
    fault = "" if checked.drafts or not checked.dropped else well_formed(f"memory list: {checked.fault}")
    problem = found.problem if isinstance(found, NoList) else fault
    if problem or isinstance(found, NoList):
        rejected = decision = InvalidOutput(problem, spoken.text, cut=cut)
    else:
        summary, memories = well_formed(found.summary), tuple(draft.to_wire() for draft in checked.drafts)
        decision = AddMemories(memories, summary) if memories else IgnoreTurns(summary or _NOTHING)
        rejected = InvalidOutput(_CUT, spoken.text, cut=True) if cut and found.path == "repaired" else None
    entries = len(checked.drafts) + checked.dropped
    notes = [f"{checked.mended} of {entries} entries were mended"] if checked.mended else []
    if checked.dropped:
        notes.append(f"{checked.dropped} of {entries} entries were left out, the first for: {checked.fault}")
    record = DecisionRecord(
        action=decision.action,
        reason=decision.reason,
        reasoning=spoken.reasoning,
        parse_path=("repaired" if checked.mended else found.path) if isinstance(found, FoundList) else "failed",
        note="" if isinstance(decision, InvalidOutput) else well_formed("; ".join(notes)),
    )
    dropped = 0 if isinstance(decision, InvalidOutput) else checked.dropped
    return _Understood(decision, record, completion.usage, dropped, rejected)


def _own(checked: CheckedDrafts, instructions: str, said: str) -> CheckedDrafts:
    """Leave out what a small model copies from the instructions: "the fact" of the form, or the fact of an example.

    It stays where at least half of its words were said too.
    """
    shown, heard = f" {' '.join(_WORD.findall(instructions.casefold()))} ", _WORD.findall(said.casefold())
    drafts: list[Draft] = []
    for draft in checked.drafts:
        words = _WORD.findall(draft.value.casefold())
        telling = [word for word in words if len(word) >= _SAYING and word not in _ROLES] or words
        times_heard = sum(any(_begins(each, word) for each in heard) for word in telling)
        if 2 * times_heard >= max(1, len(telling)) or f" {' '.join(words)} " not in shown:
            drafts.append(draft)
    copied = len(checked.drafts) - len(drafts)
    if not copied:
        return checked
    fault = "the value is a copy of the instructions"
    return CheckedDrafts(tuple(drafts), checked.dropped + copied, fault, min(checked.mended, len(drafts)))


def _begins(heard: str, word: str) -> bool:
    """Return whether a word was heard; a longer one also as a part of a word (``peanut`` of ``peanuts``)."""
    return heard == word or (len(word) >= _SAYING and word in heard)
