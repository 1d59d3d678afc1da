"""The passive memory writer: one reply lists what to remember, with no tools and no search. Source: MemReader-0.6B.

It can neither wait for more turns nor look anything up; whether a fact is new, the store decides. A reply that cannot
be read is treated as in :mod:`memloop.loops.memreader`: one repair, then InvalidOutput.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memloop.loops.decisions import AddMemories, Decision, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.loops.parsing import FoundList, NoList, find_memory_list, listen
from memloop.loops.rendering import conversation_lines, rejected_reply
from memloop.loops.steps import Decided, DecideStep, OutputRejected
from memloop.loops.tools import CheckedDrafts, check_drafts
from memloop.ports import ChatModel, Completion, Report, discard
from memloop.profiles import Profile, neutralise, well_formed
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import Source, Usage
from memloop.wire.memory_events import DecisionRecord

_NOTHING = "nothing worth keeping"


async def extract(
    turns: Sequence[Source], *, model: ChatModel, profile: Profile, report: Report[DecideStep] = discard
) -> DecisionResult:
    """Extracts the memories of the turns, oldest first; an empty list ignores them.

    Costs at most two calls. Raises ValueError without turns, and what the model raises.
    """
    if not turns:
        raise ValueError("there are no turns to decide on")
    messages = profile.render("memory", conversation=conversation_lines(turns, profile.turns))
    taken = first = _understood(await model.complete(profile.request("memory", messages)))
    if isinstance(first.decision, InvalidOutput):
        await report(OutputRejected(first.decision.problem, first.decision.raw, first.record, first.usage))
        taken = _understood(await model.complete(profile.request("memory", messages + _repair(first.decision))))
    await report(Decided(taken.decision, taken.record, taken.usage))
    replies = (taken,) if taken is first else (first, taken)
    return DecisionResult(
        taken.decision,
        records=tuple(reply.record for reply in replies),
        usage=sum((reply.usage for reply in replies), start=Usage()),
        dropped=taken.dropped,
    )


@dataclass(frozen=True, slots=True)
class _Understood:
    """One reply of the model."""

    decision: Decision
    record: DecisionRecord
    usage: Usage
    dropped: int = 0


def _understood(completion: Completion) -> _Understood:
    spoken = listen(completion)
    found = find_memory_list(completion)
    checked = CheckedDrafts() if isinstance(found, NoList) else check_drafts(found.entries)
    problem = found.problem if isinstance(found, NoList) else _problem(checked)
    if problem:
        decision: Decision = InvalidOutput(problem, spoken.text, cut=completion.finish_reason == "length")
    else:
        decision = _decision(checked, summary="" if isinstance(found, NoList) else well_formed(found.summary))
    record = DecisionRecord(
        action=decision.action,
        reason=_reason(decision),
        reasoning=spoken.reasoning,
        parse_path=found.path if isinstance(found, FoundList) else "failed",
        note="" if problem else _note(checked),
    )
    return _Understood(decision, record, completion.usage, 0 if problem else checked.dropped)


def _problem(checked: CheckedDrafts) -> str:
    """Return the first fault of a list without one valid entry."""
    return "" if checked.drafts or not checked.dropped else well_formed(f"memory list: {checked.fault}")


def _decision(checked: CheckedDrafts, *, summary: str) -> Decision:
    if not checked.drafts:
        return IgnoreTurns(summary or _NOTHING)
    return AddMemories(tuple(draft.to_wire() for draft in checked.drafts), summary)


def _note(checked: CheckedDrafts) -> str:
    if not checked.dropped:
        return ""
    entries = len(checked.drafts) + checked.dropped
    return well_formed(f"{checked.dropped} of {entries} entries were left out, the first for: {checked.fault}")


def _repair(rejected: InvalidOutput) -> tuple[ChatMessage, ...]:
    """Return the reply as the model sees it again, and what was wrong with it."""
    text = f"Not usable: {neutralise(rejected.problem)}. Nothing was stored. Reply with the JSON object alone."
    return rejected_reply(rejected.raw), ChatMessage(role="user", content=text)


def _reason(decision: Decision) -> str:
    match decision:
        case AddMemories(summary=summary):
            return summary
        case InvalidOutput(problem=problem):
            return problem
        case other:
            return other.reason
