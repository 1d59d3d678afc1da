"""The rows of a batch as rollouts: which conversation belongs to which run of a loop, and which run to which prompt.

A run of a loop is several conversations of its own (one per chunk, one for the answer): each is a row of the batch.
What is learned from is the run, so rewards and group statistics are kept per run, and only the last step goes back to
rows.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rollouts:
    """A batch of rows.

    ``rewards`` (rollouts,); ``groups`` (rollouts,), the number of each rollout's prompt; ``sessions`` (rows,), the
    number of each row's rollout; ``mask`` (rows, tokens), 1 where the policy wrote the token.
    """

    rewards: Tensor
    groups: Tensor
    sessions: Tensor
    mask: Tensor

    @classmethod
    def from_rows(
        cls, *, session_ids: Sequence[Hashable], group_ids: Sequence[Hashable], rewards: Tensor, mask: Tensor
    ) -> Rollouts:
        """Of rows that each tell their rollout, their prompt and their rollout's reward (rows,).

        Raises ValueError when lengths differ, when rows of one rollout disagree on prompt or reward, or for a reward
        that is no finite number, which it names.
        """
        if not len(session_ids) == len(group_ids) == len(rewards) == len(mask):
            raise ValueError("session ids, group ids, rewards and mask are of different numbers of rows")
        for rollout, reward in zip(session_ids, map(float, rewards), strict=True):
            if not isfinite(reward):
                raise ValueError(f"rollout {rollout} has the reward {reward}, which is not a finite number")
        sessions, first = _numbered(session_ids)
        groups = _numbered(group_ids)[0]
        made = cls(rewards[first], groups[first], sessions, mask)
        if not torch.equal(made.groups[sessions], groups):
            raise ValueError("rows of one rollout belong to different prompts")
        if not torch.equal(made.rewards[sessions], rewards):
            raise ValueError("rows of one rollout carry different rewards: a rollout has one")
        return made

    @property
    def turns(self) -> Tensor:
        """How many rows each rollout has, (rollouts,)."""
        return torch.bincount(self.sessions, minlength=len(self.rewards))

    def over_tokens(self, per_rollout: Tensor) -> Tensor:
        """Return a value of each rollout on every token that the policy wrote in it, (rows, tokens)."""
        return self.rows_over_tokens(per_rollout[self.sessions])

    def rows_over_tokens(self, per_row: Tensor) -> Tensor:
        """Return a value of each row on every token that the policy wrote in it, (rows, tokens)."""
        return per_row.unsqueeze(-1) * self.mask


def _numbered(ids: Sequence[Hashable]) -> tuple[Tensor, Tensor]:
    """Return each id's number in order of first appearance (rows,), and where each number appeared first."""
    numbers: dict[Hashable, int] = {}
    first: list[int] = []
    for place, each in enumerate(ids):
        if each not in numbers:
            numbers[each] = len(numbers)
            first.append(place)
    return torch.tensor([numbers[each] for each in ids], dtype=torch.long), torch.tensor(first, dtype=torch.long)
