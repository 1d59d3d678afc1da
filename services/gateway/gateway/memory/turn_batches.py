"""Splits the turns of a memory write to fit the model's window beside a policy's words, and flushes idle buffers."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gateway.memory.events import event_id
from gateway.memory.jobs import MemoryJob
from gateway.memory.memory import Memory
from memloop.loops.rendering import conversation_lines
from memloop.ports import Splitter
from memloop.profiles import PLAIN_TURNS, Profile, TurnLines
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Source
from memloop.wire.policy import EffectivePolicy

_LOG = logging.getLogger(__name__)
_LOOKS_PER_AGE = 4
_LONGEST_PAUSE_S = 60.0
_MOST_AT_ONCE = 100

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
class BufferLimits:
    """Limits on one buffer: turns, and tokens of the served model. A larger buffer is settled at once."""

    turns: int = 20
    tokens: int | None = None

    def within(self, room_tokens: int) -> "BufferLimits":
        """Return these limits, capped by the next decision's room."""
        return BufferLimits(self.turns, min(self.tokens or room_tokens, room_tokens))

    def hold(self, turns: Sequence[Source], *, splitter: Splitter, lines: TurnLines = PLAIN_TURNS) -> bool:
        """Return whether the turns may stay buffered."""
        few = len(turns) < self.turns
        return few and (self.tokens is None or sum(_tokens(turn, splitter, lines) for turn in turns) <= self.tokens)


def conversation_room(profile: Profile, splitter: Splitter) -> int:
    """Return the tokens available to one decision's turns: the window less prompt, tools, replies and searches."""
    spec = profile.prompts["memory"]
    tools = (json.dumps(tool, ensure_ascii=False) for tool in spec.tools)
    words = (spec.system or "", spec.template, *tools)
    fixed = sum(map(splitter.count, words)) + _CHAT_TEMPLATE_TOKENS
    window = profile.budget.window_tokens
    room = window - fixed - _REPLIES * spec.sampling.max_tokens - window // 8
    return max(room, window // _LEAST_ROOM_SHARE)


def batches(
    turns: Sequence[Source],
    *,
    splitter: Splitter,
    most_tokens: int,
    most_turns: int | None = None,
    lines: TurnLines = PLAIN_TURNS,
) -> list[tuple[Source, ...]]:
    """Split the turns, in order, into runs of at most ``most_tokens`` tokens and ``most_turns`` turns.

    A longer turn is split into several.
    """
    runs: list[tuple[Source, ...]] = []
    run: tuple[Source, ...] = ()
    left = most_tokens
    for piece, tokens in _pieces(turns, splitter, most_tokens, lines):
        if run and (tokens > left or len(run) == most_turns):
            runs.append(run)
            run, left = (), most_tokens
        run += (piece,)
        left -= tokens
    return [*runs, run] if run else runs


def newest_within(
    turns: Sequence[Source], *, splitter: Splitter, most_tokens: int, lines: TurnLines = PLAIN_TURNS
) -> tuple[Source, ...]:
    """Return the newest turns that fit; older ones are omitted here but stay stored as raw turns."""
    kept: list[Source] = []
    for turn in turns[: -_MOST_TURNS - 1 : -1]:
        most_tokens -= _tokens(turn, splitter, lines)
        if most_tokens < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


async def flush_idle_repeatedly(memory: Memory, *, age_s: float) -> None:
    """Flush idle buffers repeatedly. Every worker may do this: a flush is queued only once."""
    while True:
        try:
            await flush_idle(memory, age_s=age_s)
        except MemloopError as error:
            _LOG.warning("idle buffers: %s", error.message)
        await asyncio.sleep(min(age_s / _LOOKS_PER_AGE, _LONGEST_PAUSE_S))


async def flush_idle(memory: Memory, *, age_s: float) -> None:
    """Queue a flush of every buffer unchanged for ``age_s``. Raises the errors of store and queue."""
    before = datetime.now(UTC) - timedelta(seconds=age_s)
    for buffer in (await memory.store.idle_buffers(before, limit=_MOST_AT_ONCE)).buffers:
        # The id comes from the buffer's state, so that all workers use the same one
        state = buffer.model_dump_json(include={"namespace", "updated_at"})
        flush_id = event_id(buffer.namespace.lane(), hashlib.sha256(state.encode()).hexdigest()[:32])
        await memory.queue.enqueue(MemoryJob(event_id=flush_id, namespace=buffer.namespace))


def _pieces(
    turns: Sequence[Source], splitter: Splitter, most_tokens: int, lines: TurnLines
) -> Iterator[tuple[Source, int]]:
    for turn in turns:
        tokens = _tokens(turn, splitter, lines)
        if tokens <= most_tokens:
            yield turn, tokens
            continue
        for chunk in splitter.split(turn.content, chunk_tokens=max(1, most_tokens // 2)):
            piece = turn.model_copy(update={"content": chunk.text})
            yield piece, _tokens(piece, splitter, lines)


def _tokens(turn: Source, splitter: Splitter, lines: TurnLines) -> int:
    """Count the turn as the prompt renders it, with escaped tags at their new length."""
    return splitter.count(conversation_lines((turn,), lines)) + 1


def with_rules(profile: Profile, policy: EffectivePolicy, splitter: Splitter) -> Profile:
    """Return the profile with the policy's rules as the operator's words; as it is where the policy has none.

    Lines that do not fit into a sixth of the window are left out, the last ones first.
    """
    left = profile.budget.window_tokens // _RULES_SHARE
    lines: list[str] = []
    for line in _lines(policy):
        left -= splitter.count(line) + 1
        if left < 0:
            break
        lines.append(line)
    return profile.with_operator("\n".join(lines))


def _lines(policy: EffectivePolicy) -> Iterator[str]:
    yield from (line for line in policy.instructions.splitlines() if line.strip())
    if policy.never:
        yield f"Never keep anything about: {'; '.join(policy.never)}."
    if policy.categories:
        yield "Give each memory one of these categories as its first tag, by its exact name:"
        yield from (_named(category.name, category.description) for category in policy.categories)


def _named(name: str, description: str) -> str:
    words = " ".join(description.split())
    return f"- {name}: {words}" if words else f"- {name}"
