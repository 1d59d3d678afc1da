"""The rounds of a memory write: turns split to fit the model's window beside a policy's words, and the journal of each.

Also the adds that store a round, and the event with which a write ends.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from itertools import chain, groupby
from typing import Any, Final, Literal, TypeVar

from gateway.memory.jobs import MemoryJob
from memloop.loops.rendering import conversation_lines
from memloop.loops.results import AddMemories, BufferTurns, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.ports import Splitter
from memloop.profiles import PLAIN_TURNS, Profile, TurnLines, well_formed
from memloop.wire.base import Wire
from memloop.wire.fields import KEY_CHARS, key_of_text
from memloop.wire.memory import Buffer, MemoryDraft, MemoryItem, Source, StoreAdd, Usage, Written
from memloop.wire.memory_events import MAX_REPLY_CHARS, DecisionRecord, MemoryEvent
from memloop.wire.policy import EffectivePolicy

_DRAFTS_PER_ADD: Final = 100
_MOST_DECISIONS = 200
"""Of a write that was decided again and again: its newest."""


T = TypeVar("T")


class KeptPart(Wire):
    """The turns of one decision that was not usable, and the memories from which they were read."""

    turns: tuple[Source, ...]
    items: tuple[MemoryItem, ...]


class Start(Wire):
    """The buffer at the start of the write, or what is left of the turns that were kept.

    ``room`` are the tokens of a decision's turns then: a retry divides them alike, whatever policy holds since.
    """

    buffer: Buffer | None = None
    room: int | None = None
    kept: tuple[KeptPart, ...] = ()


class Round(Wire):
    """A decision in its journal form."""

    action: Literal["add", "buffer", "ignore", "invalid", "split"]
    drafts: tuple[MemoryDraft, ...] = ()
    reason: str = ""
    records: tuple[DecisionRecord, ...] = ()
    usage: Usage = Usage()


class Stored(Wire):
    """The store's results for the memories of a round, or for the turns of an unusable one."""

    memories: tuple[Written, ...]


def given_up(job: MemoryJob, journal: Mapping[str, str], *, attempts: int, error: str) -> MemoryEvent:
    """Return the event of a write that is given up: failed, with the model's decisions and the stored memories.

    One whose memories were to be decided again keeps these.
    """
    if job.kept is not None:
        return ended_event(job, "kept_verbatim", attempts=attempts, memories=job.kept.memories, error=error)
    names = sorted(journal, key=lambda name: (len(name), name))  # ``decision:10`` comes after ``decision:9``
    rounds = [Round.model_validate_json(journal[name]) for name in names if name.startswith("decision:")]
    stored = [Stored.model_validate_json(journal[name]) for name in names if name.startswith("stored:")]
    memories = [written for part in stored for written in part.memories]
    return ended_event(job, "failed", attempts=attempts, rounds=rounds, memories=memories, error=error)


def ended_event(
    job: MemoryJob,
    status: Literal["completed", "kept_verbatim", "failed"],
    *,
    attempts: int,
    rounds: Sequence[Round] = (),
    memories: Sequence[Written] = (),
    error: str | None = None,
) -> MemoryEvent:
    """Return the event of a write that ends now; one that was decided again goes on with its former event."""
    before, usage = job.kept, sum((decided.usage for decided in rounds), start=Usage())
    records = tuple(record for decided in rounds for record in decided.records)
    return MemoryEvent(
        event_id=job.event_id,
        status=status,
        user_id=job.namespace.user_id,
        created_at=job.created_at,
        completed_at=datetime.now(UTC),
        attempts=attempts,
        decisions=records if before is None else (*before.decisions, *records)[-_MOST_DECISIONS:],
        memories=tuple(memories),
        usage=usage if before is None else before.usage + usage,
        redacted=job.redacted,
        error=error,
        redecided=0 if before is None else before.redecided + 1,
    )


def round_of(result: DecisionResult, *, splits: bool, may_buffer: bool) -> Round:
    """Return the decision in its journal form; with ``splits``, a truncated reply leads to two smaller rounds.

    The last record of an unusable one has the beginning of the reply. Turns that may not be buffered are undecided if
    the writer would still wait for more.
    """
    match result.decision:
        case AddMemories(drafts=drafts, summary=summary):
            return Round(action="add", drafts=drafts, reason=summary, records=result.records, usage=result.usage)
        case BufferTurns(reason=reason):
            action, why = ("buffer", reason) if may_buffer else ("invalid", f"it would still wait: {reason}")
            return Round(action=action, reason=why, records=result.records, usage=result.usage)
        case IgnoreTurns(reason=reason):
            return Round(action="ignore", reason=reason, records=result.records, usage=result.usage)
        case InvalidOutput(problem=problem, raw=raw, cut=cut):
            action = "split" if cut and splits else "invalid"
            *earlier, last = result.records
            records = (*earlier, last.model_copy(update={"reply": well_formed(raw[:MAX_REPLY_CHARS])}))
            return Round(action=action, reason=problem, records=records, usage=result.usage)


def adds_of(job: MemoryJob, *, token: int | None) -> list[StoreAdd]:
    """Return the job's texts in adds of one timestamp each; a repeated call names the same writes."""
    drafts = [
        (turn, MemoryDraft(key=_key_of(job, turn, number), value=turn.said(), source=turn.if_named()))
        for number, turn in enumerate(job.turns)
        if turn.content.strip()
    ]
    return [
        store_add(
            job,
            [draft for _, draft in pairs],
            part,
            sources=(pairs[0][0],) if len(pairs) == 1 else (),
            timestamp=pairs[0][0].timestamp,
            token=token,
        )
        for part, pairs in enumerate(groups(drafts))
    ]


def store_add(
    job: MemoryJob,
    drafts: Sequence[MemoryDraft],
    part: object,
    *,
    timestamp: datetime | None,
    token: int | None,
    sources: Sequence[Source] = (),
) -> StoreAdd:
    """Return an add of the job, whose write is named after it and the ``part``."""
    given: dict[str, Any] = job.shared_with(StoreAdd) | {
        "timestamp": timestamp or job.timestamp or job.created_at,
        "event_id": f"{job.event_id}:{part}",
    }
    return StoreAdd(drafts=tuple(drafts), sources=tuple(sources), fencing_token=token, **given)


def named(number: int, turns: Sequence[Source]) -> str:
    """Return the name of a round: its number and a digest of its turns, so that no other turns have its decision."""
    said = "".join(turn.model_dump_json() for turn in turns)
    return f"{number:04}.{sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def told_apart(drafts: Sequence[MemoryDraft]) -> list[MemoryDraft]:
    """Return the drafts of one decision under keys of their own: two facts of one reply are not states of one."""
    counts = Counter[tuple[str, str]]()
    apart = list[MemoryDraft]()
    for draft in drafts:
        counts[place := (draft.memory_type, draft.key.casefold())] += 1
        apart.append(draft if counts[place] == 1 else draft.model_copy(update={"key": _part(draft.key, counts[place])}))
    return apart


def _key_of(job: MemoryJob, turn: Source, number: int) -> str:
    if job.key is None:
        return key_of_text(turn.said())
    return key_of_text(job.key) if number == 0 else _part(job.key, number + 1)


def _part(key: str, number: int) -> str:
    return f"{key[: KEY_CHARS - 12]} (part {number})"


def groups(drafts: Iterable[tuple[Source, MemoryDraft]]) -> Iterator[list[tuple[Source, MemoryDraft]]]:
    """Group the drafts by timestamp, since an add has only one, within the size limit of an add."""
    for _, same_time in groupby(drafts, key=lambda pair: pair[0].timestamp):
        yield from slices(list(same_time), _DRAFTS_PER_ADD)


def slices(parts: Sequence[T], size: int = _DRAFTS_PER_ADD) -> Iterator[list[T]]:
    """Split into runs of at most ``size``; the default is the size limit of an add."""
    return (list(parts[start : start + size]) for start in range(0, len(parts), size))


_CHAT_TEMPLATE_TOKENS = 64
_LEAST_ROOM_SHARE = 4
"""The turns get at least a quarter of the window: a chat template may render the tools shorter than our count."""
_MOST_TURNS = 100
"""The limit of turns per buffer; the store rejects more than 200."""
_RULES_SHARE = 6
"""The rules get at most a sixth of the window: the conversation needs the rest."""
_REPLIES = 2
"""The number of replies that a window must hold beside the turns: one search and the decision."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """Measures turns as a prompt renders them, and cuts them to size."""

    splitter: Splitter
    lines: TurnLines = PLAIN_TURNS

    def tokens(self, turn: Source) -> int:
        """Count the turn, with escaped tags at their new length."""
        return self.splitter.count(conversation_lines((turn,), self.lines)) + 1

    def surely_fit(self, turns: Sequence[Source], most_tokens: int) -> bool:
        """Return whether the turns fit, however they are cut: ASCII never has more tokens than characters."""
        text = conversation_lines(turns, self.lines)
        return text.isascii() and len(text) + len(turns) <= most_tokens

    def batches(
        self, turns: Sequence[Source], *, most_tokens: int, most_turns: int | None = None
    ) -> list[tuple[Source, ...]]:
        """Split the turns, in order, into runs of at most ``most_tokens`` tokens and ``most_turns`` turns.

        A longer turn is split into several.
        """
        if (most_turns is None or len(turns) <= most_turns) and self.surely_fit(turns, most_tokens):
            return [tuple(turns)] if turns else []
        runs: list[tuple[Source, ...]] = []
        run: tuple[Source, ...] = ()
        left = most_tokens
        for piece, tokens in chain.from_iterable(self._pieces(turn, most_tokens) for turn in turns):
            if run and (tokens > left or len(run) == most_turns):
                runs.append(run)
                run, left = (), most_tokens
            run += (piece,)
            left -= tokens
        return [*runs, run] if run else runs

    def newest_within(self, turns: Sequence[Source], *, most_tokens: int) -> tuple[Source, ...]:
        """Return the newest turns that fit; older ones are omitted here but stay stored as raw turns."""
        kept: list[Source] = []
        for turn in turns[: -_MOST_TURNS - 1 : -1]:
            most_tokens -= self.tokens(turn)
            if most_tokens < 0:
                break
            kept.append(turn)
        return tuple(reversed(kept))

    def _pieces(self, turn: Source, most_tokens: int) -> Iterator[tuple[Source, int]]:
        if (tokens := self.tokens(turn)) <= most_tokens:
            yield turn, tokens
            return
        chunks = self.splitter.split(turn.content, chunk_tokens=max(1, most_tokens // 3))
        for text in _at_words([chunk.text for chunk in chunks]):
            piece = turn.model_copy(update={"content": text})
            yield piece, self.tokens(piece)


_WORDS_END: Final = re.compile(r".*[.!?\u2026\u3002\uff01\uff1f](?=\s)|.*\s", re.DOTALL)


def _at_words(chunks: Sequence[str]) -> Iterator[str]:
    """Move the end of each chunk to the last end of a sentence or word in its second half: half a number is false."""
    rest = ""
    for chunk in chunks[:-1]:
        text = rest + chunk
        found = _WORDS_END.match(text, len(rest) + len(chunk) // 2)
        end = found.end() if found else len(text)
        yield text[:end]
        rest = text[end:]
    yield rest + chunks[-1]


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """Limits on one buffer: turns, and tokens of the served model. A larger buffer is settled at once."""

    turns: int = 20
    tokens: int | None = None

    def within(self, room_tokens: int) -> "BufferLimits":
        """Return these limits, capped by the next decision's room."""
        return BufferLimits(self.turns, min(self.tokens or room_tokens, room_tokens))

    def hold(self, turns: Sequence[Source], ruler: Ruler) -> bool:
        """Return whether the turns may stay buffered."""
        if self.tokens is None or len(turns) >= self.turns or ruler.surely_fit(turns, self.tokens):
            return len(turns) < self.turns
        return sum(map(ruler.tokens, turns)) <= self.tokens


def conversation_room(profile: Profile, splitter: Splitter) -> int:
    """Return the tokens available to one decision's turns: the window less prompt, tools, replies and searches."""
    spec = profile.prompts["memory"]
    tools = (json.dumps(tool, ensure_ascii=False) for tool in spec.tools)
    fixed = _prompt_tokens(splitter, (spec.system or "", spec.template, *tools)) + _CHAT_TEMPLATE_TOKENS
    window = profile.budget.window_tokens
    room = window - fixed - _REPLIES * spec.sampling.max_tokens - window // 8
    return max(room, window // _LEAST_ROOM_SHARE)


@lru_cache(maxsize=64)
def _prompt_tokens(splitter: Splitter, words: tuple[str, ...]) -> int:
    """Count the tokens of a prompt, once for all writes that share it."""
    return sum(map(splitter.count, words))


def with_rules(profile: Profile, policy: EffectivePolicy, splitter: Splitter) -> Profile:
    """Return the profile with the policy's rules as the operator's words; as it is where the policy has none.

    Lines that do not fit into a sixth of the window are left out, the last ones first.
    """
    left = profile.budget.window_tokens // _RULES_SHARE
    rules = [line for line in policy.instructions.splitlines() if line.strip()]
    if policy.never:
        rules.append(f"Never keep anything about: {'; '.join(policy.never)}.")
    if policy.categories:
        rules.append("Give each memory one of these categories as its first tag, by its exact name:")
        described = [(category.name, " ".join(category.description.split())) for category in policy.categories]
        rules += [f"- {name}: {words}" if words else f"- {name}" for name, words in described]
    lines: list[str] = []
    for line in rules:
        left -= splitter.count(line) + 1
        if left < 0:
            break
        lines.append(line)
    return profile.with_operator("\n".join(lines))
