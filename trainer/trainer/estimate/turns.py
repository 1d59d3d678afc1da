"""Estimates the turns of a loop's rollout and their tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from memloop.profiles.profile import PromptName
from trainer.estimate.assumptions import Assumptions
from trainer.estimate.run import Loop


@dataclass(frozen=True, slots=True)
class Turn:
    """A kind of turn: its mean number in a rollout, and the mean tokens of its prompt and its reply."""

    kind: PromptName
    count: float
    prompt: float
    reply: float


def turns_of(loop: Loop, assumed: Assumptions) -> list[Turn]:
    """Return the turns of a loop. For N chunks, MemAgent reads N times and answers. MemReread with k rereads of at most
    R: ``(1 + k)·N`` reads, ``k + [k < R]`` judgements, ``k`` integrations, ``1 + k`` answers (arXiv 2605.10268).
    MemReader: its searches and the decision.
    """
    if loop.name == "memreader":
        lists = loop.profile.prompts["memory"].parser != "tool_call"  # one reply, no search
        searches = 0.0 if lists else min(assumed.searches, float(loop.max_searches))
        reply = _reply(loop, "memory", assumed)
        return [Turn("memory", searches + 1, assumed.conversation_tokens, reply)]
    rereads = min(assumed.rereads, float(loop.max_rereads)) if loop.name == "memreread" else 0.0
    chunks = math.ceil(assumed.document_tokens / loop.profile.budget.chunk_tokens)
    turns = [_read(loop, (1 + rereads) * chunks, assumed), _short(loop, "answer", 1 + rereads, assumed)]
    if loop.name == "memreread":
        judged = rereads + (rereads < loop.max_rereads)
        turns += [_short(loop, "judge", judged, assumed), _short(loop, "integrate", rereads, assumed)]
    return turns


def _read(loop: Loop, count: float, assumed: Assumptions) -> Turn:
    turn = _short(loop, "read", count, assumed)
    return Turn("read", count, turn.prompt + loop.profile.budget.chunk_tokens, turn.reply)


def _short(loop: Loop, kind: PromptName, count: float, assumed: Assumptions) -> Turn:
    """Return a turn whose prompt holds the question and the memory."""
    memory = _reply(loop, "read", assumed)
    return Turn(kind, count, assumed.template_tokens + assumed.question_tokens + memory, _reply(loop, kind, assumed))


def _reply(loop: Loop, kind: PromptName, assumed: Assumptions) -> float:
    return loop.profile.prompts[kind].sampling.max_tokens * assumed.reply_share
