"""Packs samples into rows of one length, in which samples that begin alike share their beginning.

A row holds groups. The tokens that all samples of a group begin with stand once; each sample's own tokens follow as a
branch that sees them and itself. Positions go on from the shared beginning in every branch, so a sample's logits are
those that it would get alone.
"""

# transformers' and torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, TypeVar

import torch
from torch import Tensor

from trainer.small.sample import Sample

NO_TARGET: Final = -100
_HIDDEN: Final = -1e9
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A sample's prompt as the engine renders it, and its reply with the end token, whose loss counts ``weight``."""

    task: str
    prompt: list[int]
    reply: list[int]
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.prompt) + len(self.reply)


class Encoder:
    """Renders samples with a checkpoint's tokenizer and chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def prompt(self, sample: Sample) -> list[int]:
        """Return the tokens of the prompt, up to where the reply begins."""
        messages = [{"role": message.role, "content": message.text()} for message in sample.messages]
        text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return self._tokenizer.encode(text, add_special_tokens=False)

    def tokens(self, sample: Sample) -> Tokens:
        """Return the tokens of the prompt and of the reply."""
        reply = self._tokenizer.encode(sample.reply + self._tokenizer.eos_token, add_special_tokens=False)
        return Tokens(sample.task, self.prompt(sample), reply)

    def group(self, samples: Sequence[Sample]) -> list[Tokens]:
        """Return the tokens of each sample."""
        return [self.tokens(sample) for sample in samples]


@dataclass(slots=True)
class Row:
    """A row that is being filled: tokens, positions and targets; who owns a token, and whose tokens it sees besides.

    ``tasks`` are the tokens of each.
    """

    length: int
    ids: list[int] = field(default_factory=list[int])
    positions: list[int] = field(default_factory=list[int])
    targets: list[int] = field(default_factory=list[int])
    weights: list[float] = field(default_factory=list[float])
    owners: list[int] = field(default_factory=list[int])
    parents: list[int] = field(default_factory=list[int])
    tasks: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def room(self) -> int:
        """Tokens that still fit."""
        return self.length - len(self.ids)

    def add(self, group: Sequence[Tokens]) -> Sequence[Tokens]:
        """Add as many of a group's samples as fit, and return the others."""
        shared = shared_length([sample.prompt for sample in group])
        taken, cost = 0, shared
        for sample in group:
            cost += len(sample) - shared
            if cost > self.room:
                break
            taken += 1
        if taken:
            before = len(self.ids)
            trunk = self._put(group[0].prompt[:shared], [NO_TARGET] * shared, at=0)
            for sample in group[:taken]:
                own = sample.prompt[shared:] + sample.reply
                quiet = [NO_TARGET] * (len(own) - len(sample.reply) - 1)
                targets = [*quiet, *sample.reply, NO_TARGET]
                self._put(own, targets, at=shared, parent=trunk, weight=sample.weight)
            task = group[0].task
            self.tasks[task] = self.tasks.get(task, 0) + len(self.ids) - before
        return group[taken:]

    def _put(
        self, ids: list[int], targets: list[int], *, at: int, parent: int | None = None, weight: float = 1.0
    ) -> int:
        owner = self.owners[-1] + 1 if self.owners else 0
        self.ids += ids
        self.positions += range(at, at + len(ids))
        self.targets += targets
        self.weights += [weight] * len(ids)
        self.owners += [owner] * len(ids)
        self.parents += [owner if parent is None else parent] * len(ids)
        return owner


@dataclass(frozen=True, slots=True)
class Batch:
    """Packed rows: tensors (rows, length), and an additive ``mask`` (rows, length, length)."""

    ids: Tensor
    positions: Tensor
    targets: Tensor
    weights: Tensor
    mask: Tensor

    @classmethod
    def of(cls, rows: Sequence[Row], device: torch.device, *, fixed: bool = False) -> Batch:
        """Pad rows to their length and put them together. A token of padding sees itself alone.

        Without ``fixed`` they are padded to the longest alone: compiled steps want one shape, others the least work.
        """
        length = rows[0].length if fixed else max(len(row.ids) for row in rows)

        def padded(lists: Iterable[list[_Number]], value: _Number) -> Tensor:
            return torch.tensor([held + [value] * (length - len(held)) for held in lists], device=device)

        owners = padded((row.owners for row in rows), -1)
        parents = padded((row.parents for row in rows), -2)
        keys = owners[:, None, :]
        seen = ((owners[:, :, None] == keys) & (keys >= 0)) | (parents[:, :, None] == keys)
        seen &= torch.ones(length, length, dtype=torch.bool, device=device).tril()
        seen |= torch.eye(length, dtype=torch.bool, device=device)
        return cls(
            padded((row.ids for row in rows), 0),
            padded((row.positions for row in rows), 0),
            padded((row.targets for row in rows), NO_TARGET),
            padded((row.weights for row in rows), 0.0),
            torch.zeros(seen.shape, device=device).masked_fill(~seen, _HIDDEN),
        )


def shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens the prompts begin with alike; the last token of a prompt is always its own."""
    most = min(len(prompt) for prompt in prompts) - 1
    columns = zip(*(prompt[:most] for prompt in prompts), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def packed(groups: Iterable[Sequence[Tokens]], length: int) -> Iterator[tuple[Row, int]]:
    """Yield full rows without end, each with the number of groups that it and the rows before it used up.

    Every row begins with a new group, so that a run can go on from that number: what of a group no longer fits is left
    out, as is a sample over ``length``.
    """
    row = Row(length)
    for number, group in enumerate(groups):
        fitting = [sample for sample in group if len(sample) <= length]
        if fitting and len(row.add(fitting)) == len(fitting):
            yield row, number
            row = Row(length)
            row.add(fitting)


def packed_whole(groups: Iterable[Sequence[Tokens]], length: int) -> list[Row]:
    """Return rows that hold every sample but those over ``length``."""
    rows = [Row(length)]
    for group in groups:
        left: Sequence[Tokens] = [sample for sample in group if len(sample) <= length]
        while left:
            left = rows[-1].add(left)
            if left:
                rows.append(Row(length))
    return rows
