"""Converts examples to padded batches of token IDs, bucketed by length."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from memloop.profiles import Profile
from trainer.tiny.chat_format import render_prompt
from trainer.tiny.curriculum import Mix
from trainer.tiny.draw import draw
from trainer.tiny.example import Example, Role
from trainer.tiny.prose import Prose
from trainer.tiny.tokenizer import END, token_id

BUCKETS = (64, 96, 128, 192, 256, 352)
DECISION_WEIGHT = 4.0


@dataclass(frozen=True, slots=True)
class Row:
    """A tokenized example: ids (seq,), and for each target index its loss weight."""

    ids: list[int]
    targets: list[int]
    weights: list[float]
    kind: str


@dataclass(frozen=True, slots=True)
class Batch:
    """`at` are flat positions whose next token is learned: ids (batch, seq), at, goal and weight (n,), row (n,)."""

    ids: Tensor
    at: Tensor
    goal: Tensor
    weight: Tensor
    row: Tensor
    kinds: tuple[str, ...]

    def to(self, device: str) -> Batch:
        """The batch with its tensors on a device."""
        return Batch(
            ids=self.ids.to(device),
            at=self.at.to(device),
            goal=self.goal.to(device),
            weight=self.weight.to(device),
            row=self.row.to(device),
            kinds=self.kinds,
        )

    def only(self, rows: Tensor) -> Batch:
        """Return the batch of some of its rows; `rows` (n,) are their numbers, ascending."""
        length, device = self.ids.shape[1], self.ids.device
        number = torch.full((len(self.kinds),), -1, device=device)
        number[rows] = torch.arange(len(rows), device=device)
        here = number[self.row] >= 0
        row = number[self.row][here]
        return Batch(
            ids=self.ids[rows],
            at=row * length + self.at[here] % length,
            goal=self.goal[here],
            weight=self.weight[here],
            row=row,
            kinds=tuple(self.kinds[int(kept)] for kept in rows),
        )


class Encoder:
    """Tokenizes examples and weighs their tokens: decisions (first token, values, after a sentence) count more."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._end = token_id(tokenizer, END)
        self._stop = token_id(tokenizer, ".")
        self._line_end = tokenizer.encode("\n", add_special_tokens=False).ids[0]
        vocabulary = tokenizer.get_vocab()
        self._before_decisions = {self._stop, *tokenizer.encode(" is", add_special_tokens=False).ids}
        self._values = {token_id for text, token_id in vocabulary.items() if len(text) == 3 and text.isdigit()}

    def rows(self, examples: list[Example]) -> list[Row]:
        """Convert the examples to rows, in order."""
        prompts = self._tokenizer.encode_batch([prompt_text(example) for example in examples], add_special_tokens=False)
        replies = self._tokenizer.encode_batch([example.completion for example in examples], add_special_tokens=False)
        return [
            self._row(*each) for each in zip(examples, [p.ids for p in prompts], [r.ids for r in replies], strict=True)
        ]

    def _row(self, example: Example, prompt: list[int], reply: list[int]) -> Row:
        ids = [*prompt, *reply, self._end]
        targets = list(range(len(prompt), len(ids)))
        if example.role == "recall":
            targets = [t for t in targets[:-1] if ids[t + 1] == self._stop]
        if example.role == "queries":
            targets = [t for t in targets if self._answers(ids[len(prompt) : t])]
        kind = f"{example.role}/{example.kind}" + ("/thinking" if example.thinking else "")
        return Row(ids, targets, [self._weight(ids, t, len(prompt), example.role) for t in targets], kind)

    def _answers(self, before: list[int]) -> bool:
        """Return whether the next token is in an answer: after an even number of line ends."""
        lines = before.count(self._line_end)
        return lines >= 2 and lines % 2 == 0

    def _weight(self, ids: list[int], at: int, first: int, role: Role) -> float:
        decides = role == "relate" or at == first or ids[at] in self._values or ids[at - 1] in self._before_decisions
        return DECISION_WEIGHT if decides else 1.0


def prompt_text(example: Example) -> str:
    """Return the text before the reply."""
    if example.messages[0].role == "raw":
        return example.messages[0].text()
    return render_prompt(example.messages, tools=example.tools, thinking=example.thinking)


def collate(rows: list[Row], length: int) -> Batch:
    """Right-pad the rows to `length`; padding needs no mask, as attention is causal and it has no targets."""
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row.ids)] = torch.tensor(row.ids)
    flat = [(number, target) for number, row in enumerate(rows) for target in row.targets]
    at = torch.tensor([number * length + target - 1 for number, target in flat])
    return Batch(
        ids=ids,
        at=at,
        goal=ids.flatten()[at + 1],
        weight=torch.tensor([weight for row in rows for weight in row.weights]),
        row=torch.tensor([number for number, _ in flat]),
        kinds=tuple(row.kind for row in rows),
    )


@dataclass(frozen=True)
class Source:
    """The source of examples."""

    profile: Profile
    prose: Prose
    encoder: Encoder

    def draw(self, rng: random.Random, mix: Mix) -> Example:
        """Draw one example of the mix."""
        return draw(rng, mix, self.profile, self.prose)


class Feed:
    """An endless stream of full batches; rows wait in buckets by length until a batch is full.

    With `reads_of` above 1, reading turns come in batches of their own, that many times as large.
    """

    def __init__(self, source: Source, rng: random.Random, *, batch_tokens: int, reads_of: int = 1) -> None:
        self._source, self._rng, self._batch_tokens, self._reads_of = source, rng, batch_tokens, reads_of
        self._waiting: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)

    def next(self, mix: Mix) -> Batch:
        """Return the next batch under the mix."""
        while True:
            for (length, times), rows in self._waiting.items():
                size = self._batch_tokens // length * times
                if len(rows) >= size:
                    self._waiting[length, times] = rows[size:]
                    return collate(rows[:size], length)
            self._fill(mix)

    def _fill(self, mix: Mix) -> None:
        for row in self._source.encoder.rows([self._source.draw(self._rng, mix) for _ in range(64)]):
            bucket = next((length for length in BUCKETS if len(row.ids) <= length), None)
            if bucket is not None and row.targets:
                times = self._reads_of if row.kind.startswith("read/") else 1
                self._waiting[bucket, times].append(row)
