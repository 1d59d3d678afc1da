"""A reward for MemReader's loop (arXiv 2604.07877): the right action, the right facts, a valid call, no rambling.

Parts and weights are ours.

    R = valid · (w_a · action + w_e · extraction + w_f · format) − w_l · overlong

    valid        0 when the loop ended without a usable call, else 1: no part of the reward is for sale to bad form
    action       1 when the deciding call is one that gold accepts (add, buffer, ignore), else 0
    extraction   F1 of the memories against gold's, each pair compared by token F1, each memory used once;
                 1 when neither side has any
    format       the share of the model's turns that were calls fit for the tools' schema
    overlong     how far the mean reply is over its free tokens, as a share of them, 0 to 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memloop.loops.results import DecisionResult, InvalidOutput
from memloop.scoring.lenient import token_f1
from memloop.wire.memory_events import DecisionRecord


@dataclass(frozen=True, slots=True)
class Gold:
    """What a perfect writer does: any of ``actions``, and for an add these memories."""

    actions: tuple[str, ...]
    memories: tuple[str, ...] = ()

    @classmethod
    def told(cls, words: Sequence[str]) -> Gold:
        """Of a row's ground truth: the action, then the memories. Raises ValueError without words."""
        if not words:
            raise ValueError("a decision without gold has no reward")
        return cls((words[0],), tuple(words[1:]))


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the parts; the first three should add up to 1. ``free_tokens``: the length of reply that costs nothing."""

    action: float = 0.4
    extraction: float = 0.4
    format: float = 0.2
    overlong: float = 0.1
    free_tokens: int = 512


@dataclass(frozen=True, slots=True)
class MemReaderReward:
    """The parts, each 0 to 1, and their sum as weighted."""

    total: float
    action: float
    extraction: float
    format: float
    overlong: float


_DEFAULT = Weights()


def memreader_reward(result: DecisionResult, gold: Gold, *, weights: Weights = _DEFAULT) -> MemReaderReward:
    """Return the reward of one run of the loop, −``weights.overlong`` to 1."""
    drafts = [draft.value for draft in result.decision.drafts]
    valid = not isinstance(result.decision, InvalidOutput)
    action = float(result.decision.action in gold.actions)
    extraction = extraction_f1(drafts, gold.memories)
    form = format_share(result.records)
    overlong = _overlong(result, weights.free_tokens)
    earned = weights.action * action + weights.extraction * extraction + weights.format * form
    return MemReaderReward(valid * earned - weights.overlong * overlong, action, extraction, form, overlong)


def extraction_f1(memories: Sequence[str], golds: Sequence[str]) -> float:
    """2 · Σ similarity of matched pairs / (memories + golds); the most similar pairs are matched first."""
    if not memories and not golds:
        return 1.0
    pairs = sorted(
        ((token_f1(mine, [gold]), i, j) for i, mine in enumerate(memories) for j, gold in enumerate(golds)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    mine_used, gold_used, matched = set[int](), set[int](), 0.0
    for similarity, i, j in pairs:
        if i not in mine_used and j not in gold_used:
            mine_used.add(i)
            gold_used.add(j)
            matched += similarity
    return 2 * matched / (len(memories) + len(golds))


def format_share(records: Sequence[DecisionRecord]) -> float:
    """Return the share of turns that were valid calls; 0 without turns."""
    valid = sum(record.action != "invalid" and record.parse_path not in {"failed", "repaired"} for record in records)
    return valid / len(records) if records else 0.0


def _overlong(result: DecisionResult, free_tokens: int) -> float:
    mean = result.usage.output_tokens / max(result.usage.llm_calls, 1)
    return min(max(mean / free_tokens - 1.0, 0.0), 1.0)
