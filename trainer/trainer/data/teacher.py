"""Traces of the memory writer from dialogues: a teacher behind an endpoint runs the served loop over them.

The loop is :func:`memloop.loops.memreader.decide`, so its own parser and tool schema judge every reply. A run that ends
without a usable decision is left out, and a reply that was rejected on the way stays as context and is not learned.
Replies are on the disk before the loop goes on: a run that was killed replays what was paid for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from memloop.loops.journal import Journaled, dump_completion, load_completion
from memloop.loops.memreader import decide
from memloop.loops.results import BufferTurns, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.ports import ChatModel, Completion, Prompt, Recalled
from memloop.profiles import Profile
from memloop.wire.chat import Json
from memloop.wire.memory import Source
from trainer.data.dialogues.dialogue import ASSISTANT, Conversation, Turn
from trainer.data.journal import Journal
from trainer.data.production import was_rejected
from trainer.data.replies import reply_message
from trainer.data.retry_policy import RetryPolicy
from trainer.data.rows import conversation_row, writing_row
from trainer.decisions import decided_by
from trainer.memories import HeldMemories

USER = "user"


@dataclass(frozen=True, slots=True)
class PaidReply:
    """A reply by its place in the run, as :mod:`memloop.loops.journal` dumps it."""

    key: str
    reply: str


class PaidReplies:
    """The ``Checkpoints`` of one conversation's loops, in a journal that outlives a kill."""

    def __init__(self, journal: Journal[PaidReply], scope: str) -> None:
        self._journal = journal
        self._scope = scope

    async def load(self, key: str) -> Completion | None:
        """See ``Checkpoints``."""
        held = self._journal.get(f"{self._scope}:{key}")
        return None if held is None else load_completion(held.reply)

    async def save(self, key: str, completion: Completion) -> None:
        """See ``Checkpoints``."""
        self._journal.append(PaidReply(f"{self._scope}:{key}", dump_completion(completion).decode("ascii")))


@dataclass(frozen=True, slots=True)
class TeacherTrace:
    """One run of the loop: what it was asked, its calls, its decision."""

    id: str
    turns: tuple[Source, ...]
    stored: tuple[Recalled, ...]
    calls: tuple[tuple[Prompt, Completion], ...]
    result: DecisionResult

    @property
    def usable(self) -> bool:
        """Whether it ended in a decision."""
        return not isinstance(self.result.decision, InvalidOutput)

    def imitation(self, data_source: str, index: int) -> Json:
        """The whole run as one conversation; its accepted replies are learned."""
        prompt, reply = self.calls[-1]
        messages = (*prompt.messages, reply_message(reply, with_tools=bool(prompt.tools)))
        said = [place for place, message in enumerate(messages) if message.role == "assistant"]
        learned = [place for place, record in zip(said, self.result.records, strict=True) if not was_rejected(record)]
        return conversation_row(
            data_source=data_source,
            index=index,
            id_=self.id,
            kind=decided_by(self.result.decision)[0],
            messages=messages,
            learned=learned,
            tools=prompt.tools,
            thinking=prompt.thinking,
        )

    def task(self, data_source: str, index: int, *, gold: Sequence[str] | None = None) -> Json:
        """The same as a task for RL, with the teacher's decision for gold unless a better one is known."""
        return writing_row(
            data_source=data_source,
            index=index,
            id_=self.id,
            turns=self.turns,
            stored=self.stored,
            gold=gold or decided_by(self.result.decision),
        )


@dataclass(frozen=True, slots=True)
class Teacher:
    """A model that teaches, and its prompts.

    ``window`` turns are decided on at once, with those that were buffered before: the profile's unless given, and a
    whole session where neither names a number.
    """

    model: ChatModel
    profile: Profile
    window: int | None = None
    retries: RetryPolicy = field(default_factory=RetryPolicy)

    async def traces(self, talk: Conversation, journal: Journal[PaidReply]) -> AsyncGenerator[TeacherTrace]:
        """The runs over a conversation, in order; what one stores the next ones find. Raises MemloopError."""
        paid = Journaled(_Retrying(self.model, self.retries), PaidReplies(journal, talk.id))
        stored: tuple[Recalled, ...] = ()
        waiting: tuple[Source, ...] = ()
        size = self.window or self.profile.turns_per_decision or max(len(each.turns) for each in talk.sessions)
        for number, (turns, last) in enumerate(_windows(talk, size)):
            shown = (*waiting, *turns)
            recorded = _Recorded(paid)
            may_buffer = not last and len(shown) < 3 * size
            result = await decide(
                shown, model=recorded, index=HeldMemories(stored), profile=self.profile, may_buffer=may_buffer
            )
            if not may_buffer and isinstance(result.decision, BufferTurns):
                result = replace(result, decision=IgnoreTurns(f"not settled: {result.decision.reason}"))
            yield TeacherTrace(f"{talk.id}/{number}", shown, stored, tuple(recorded.calls), result)
            waiting = shown if isinstance(result.decision, BufferTurns) else ()
            stored += _new(result, f"{talk.id}/{number}", shown[-1].timestamp)


class _Retrying:
    """A ChatModel that is asked again when a call fails."""

    def __init__(self, model: ChatModel, retries: RetryPolicy) -> None:
        self._model = model
        self._retries = retries

    async def complete(self, prompt: Prompt) -> Completion:
        return await self._retries.get(partial(self._model.complete, prompt))


class _Recorded:
    """A ChatModel that keeps its calls."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.calls: list[tuple[Prompt, Completion]] = []

    async def complete(self, prompt: Prompt) -> Completion:
        completion = await self._model.complete(prompt)
        self.calls.append((prompt, completion))
        return completion


def _windows(talk: Conversation, size: int) -> Iterator[tuple[tuple[Source, ...], bool]]:
    """The turns of each session, so many at a time, and whether they are the session's last; no turn is empty."""
    names = list(dict.fromkeys(turn.speaker for turn in talk.turns))
    for session in talk.sessions:
        said = [_source(turn, names) for turn in session.turns if turn.text.strip()]
        for start in range(0, len(said), size):
            yield tuple(said[start : start + size]), start + size >= len(said)


def _source(turn: Turn, names: list[str]) -> Source:
    """A turn as a client would send it: of two named speakers the first is the user, and both say who they are."""
    if turn.speaker in (USER, ASSISTANT):
        return Source(role=turn.speaker, content=turn.text, timestamp=turn.said_at)
    role = USER if turn.speaker == names[0] else ASSISTANT
    return Source(role=role, content=f"{turn.speaker}: {turn.text}", timestamp=turn.said_at)


def _new(result: DecisionResult, name: str, at: datetime | None) -> tuple[Recalled, ...]:
    when = at or datetime.min.replace(tzinfo=UTC)
    return tuple(
        Recalled(f"{name}/{number}", draft.value, when, draft.key)
        for number, draft in enumerate(result.decision.drafts)
    )
