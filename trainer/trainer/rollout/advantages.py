"""Converts a verl batch to the inputs of :mod:`trainer.objectives`; returns advantages and loss masks."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor

from trainer.objectives.amortised import amortised_advantages, amortised_mask
from trainer.objectives.dapo import less_overlong, overlong_penalty, without_truncated
from trainer.objectives.grpo import grpo_advantages
from trainer.objectives.rea_grpo import rea_grpo_advantages
from trainer.objectives.rollouts import Rollouts
from trainer.rollout.settings import LoopSettings


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch as verl holds it. ``keys`` are ``PROMPT_SESSION_TURN``, ``mask`` (rows, tokens), ``rewards`` (rows,).

    ``facts`` are the agent loop's fields of each row: ``final``, ``kind``, ``step``, ``change``, ``nodes``, the reply's
    ``limit``, whether it was ``truncated`` there, and the ``credit`` of an agent's call.
    """

    keys: Sequence[str]
    facts: Sequence[Mapping[str, Any]]
    rewards: Tensor
    mask: Tensor

    def rollouts(self) -> Rollouts:
        """Group the rows into sessions. Each has one reward, however many turns it has."""
        sessions = [key.rsplit("_", 1)[0] for key in self.keys]
        prompts = [session.rsplit("_", 1)[0] for session in sessions]
        return Rollouts.from_rows(session_ids=sessions, group_ids=prompts, rewards=self.rewards, mask=self.mask)

    @property
    def final(self) -> Tensor:
        """Return the answer's turns (rows,)."""
        return torch.tensor([bool(each.get("final")) for each in self.facts])

    @property
    def truncated(self) -> Tensor:
        """Return the replies that hit their limit (rows,)."""
        return torch.tensor([bool(each.get("truncated")) for each in self.facts])

    @property
    def limits(self) -> Tensor:
        """Return the limits of the replies (rows,); 1 for a row that verl added to fill a batch."""
        return torch.tensor([int(each.get("limit", 1)) for each in self.facts])


def trained_mask(rows: Rows, settings: LoopSettings) -> Tensor:
    """Return the tokens in the loss (rows, tokens), without turns or replies that the recipe excludes."""
    mask = rows.mask
    if settings.objective == "amortised":
        mask = amortised_mask(mask, final=rows.final, train_final=settings.train_final)
    return without_truncated(mask, rows.truncated) if settings.drop_truncated else mask


def advantages_of(rows: Rows, settings: LoopSettings) -> Tensor:
    """Return advantages (rows, tokens): the objective's, and what an agent's call adds to its own."""
    own = torch.tensor([float(each.get("credit", 0.0)) for each in rows.facts])
    if settings.objective == "amortised":
        rollouts = rows.rollouts()
        own = own / rollouts.turns[rollouts.sessions]
    return _of_objective(rows, settings) + own.unsqueeze(-1) * trained_mask(rows, settings)


def _of_objective(rows: Rows, settings: LoopSettings) -> Tensor:
    rollouts, facts = rows.rollouts(), rows.facts
    if settings.overlong_share:
        lengths = rows.mask.sum(-1)
        penalties = overlong_penalty(lengths, limits=rows.limits, share=settings.overlong_share)
        rollouts = less_overlong(rollouts, penalties * (lengths > 0))
    match settings.objective:
        case "grpo" | "dapo" | "dr-grpo" | "gspo":
            return grpo_advantages(rollouts, normalise_by_std=settings.deviation)
        case "amortised":
            return amortised_advantages(
                rollouts,
                final=rows.final,
                train_final=settings.train_final,
                normalise_by_std=settings.deviation,
            )
        case "rea-grpo":
            return rea_grpo_advantages(
                rollouts,
                nodes=_per_rollout(rollouts, [int(each.get("nodes", 1)) for each in facts]),
                steps=[each.get("step") for each in facts],
                kinds=[each.get("kind", "") for each in facts],
            )


def filled(keys: Sequence[str], live: Sequence[bool], multiple: int) -> list[str]:
    """Return the live keys and as few others as fill a multiple, at least one multiple; in their order."""
    wanted = max(1, ceil(sum(live) / multiple)) * multiple
    live_first = sorted(range(len(keys)), key=lambda at: not live[at])
    return [keys[at] for at in sorted(live_first[:wanted])]


def _per_rollout(rollouts: Rollouts, of_rows: Sequence[int]) -> Tensor:
    """Reduce a number that all rows of a rollout share to (rollouts,)."""
    numbers = torch.zeros(len(rollouts.rewards), dtype=torch.long)
    numbers[rollouts.sessions] = torch.tensor(of_rows)
    return numbers
