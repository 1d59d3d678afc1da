"""GRPO without a framework: several replies to each prompt, and a step along what made some better than others.

One update follows each round of replies, so that they are the network's own and need no ratio (Dr. GRPO, arXiv
2503.20783: the advantage is the reward less its prompt's mean, without a division by its spread). The prompts are of
kinds that the examples never showed; rewards are those of the evaluation.
"""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import fmean

import torch

from trainer.small.evaluate import judge
from trainer.small.generate import Decoder
from trainer.small.kinds import English
from trainer.small.mix import Sources, draw_group
from trainer.small.network import SmallLlama
from trainer.small.packing import Batch, Encoder, Row, Tokens, packed_whole
from trainer.small.sample import Sample
from trainer.small.train import reply_loss

_TASKS = ("write", "write", "relate", "answer", "answer", "read", "read")
_FIGURES = {"write": "writes", "answer": "answers", "conclude": "reading answers"}
_MOST_TOKENS = 96
_PENALTY_OF_FALSE = 1.0


@dataclass(frozen=True, slots=True)
class Reinforcing:
    """``prompts`` a round, ``replies`` to each at ``temperature``; rows as in training by examples."""

    prompts: int = 64
    replies: int = 8
    temperature: float = 1.0
    learning_rate: float = 1e-4
    row_tokens: int = 1024
    rows_at_once: int = 8
    section_words: tuple[int, ...] = (40, 80, 130, 180)
    fixed_shapes: bool = False


def reinforce(
    network: SmallLlama,
    encoder: Encoder,
    settings: Reinforcing,
    *,
    decode: Callable[[list[int]], str],
    end: int,
    seconds: float,
    report: Callable[[dict[str, float]], None],
) -> int:
    """Reinforce for so many seconds, and return the number of updates."""
    english = English("reward", section_words=settings.section_words)
    decoder, updates, began = Decoder(network), 0, time.monotonic()
    optimizer = torch.optim.AdamW(network.adapters().values(), lr=settings.learning_rate, weight_decay=0.0)
    while time.monotonic() - began < seconds:
        samples = _prompts(english, Random(f"reinforce/{updates}"), settings.prompts)
        prompts = [encoder.prompt(sample) for sample in samples]
        asked = [prompt for prompt in prompts for _ in range(settings.replies)]
        replies = decoder(asked, end=end, most=_MOST_TOKENS, temperature=settings.temperature)
        groups: list[list[Tokens]] = []
        rewards: list[float] = []
        for number, (sample, prompt) in enumerate(zip(samples, prompts, strict=True)):
            own = replies[number * settings.replies : (number + 1) * settings.replies]
            scores = [reward(sample, decode(reply)) for reply in own]
            rewards += scores
            mean = fmean(scores)
            groups.append(
                [
                    Tokens(sample.task, prompt, ended_reply(reply, end=end), weight=score - mean)
                    for reply, score in zip(own, scores, strict=True)
                    if len(set(scores)) > 1
                ]
            )
        learned = sum(len(sample.reply) for group in groups for sample in group)
        if learned:
            rows = packed_whole([group for group in groups if group], settings.row_tokens)
            rows += [Row(settings.row_tokens)] * (-len(rows) % settings.rows_at_once if settings.fixed_shapes else 0)
            for start in range(0, len(rows), settings.rows_at_once):
                some = rows[start : start + settings.rows_at_once]
                batch = Batch.of(some, network.device, fixed=settings.fixed_shapes)
                (reply_loss(network, batch) / learned).backward()
            torch.nn.utils.clip_grad_norm_(network.adapters().values(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        updates += 1
        report({"update": updates, "reward": round(fmean(rewards), 4), "seconds": round(time.monotonic() - began, 1)})
    return updates


def ended_reply(reply: list[int], *, end: int) -> list[int]:
    """Return the reply with its end, which one that was cut does not have."""
    return [*reply, end] if len(reply) < _MOST_TOKENS else reply


def reward(sample: Sample, reply: str) -> float:
    """Return 1 for a right reply and 0 for another, less 1 for a memory that is false of the user.

    An answer in more than twice the words of the note is not right: who repeats all notes always holds the gold.
    """
    if sample.task == "answer" and len(reply.split()) > 2 * len(sample.reply.split()) + 5:
        return 0.0
    scores = judge([sample], [reply])
    right = scores.right[_FIGURES.get(sample.task, sample.task)]
    return right - _PENALTY_OF_FALSE * scores.right.get("false of the user", 0)


def _prompts(english: English, rng: Random, count: int) -> list[Sample]:
    drawn: list[Sample] = []
    while len(drawn) < count:
        drawn.append(rng.choice(draw_group(rng.choice(_TASKS), english, rng, Sources())))
    return drawn
