"""Measures a network on kinds, words and small talk that training never shows, by exact result."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, cast

from memloop.loops.parsing.memory_list import FoundList, find_memory_lines
from memloop.loops.parsing.reading import parse_answer
from memloop.ports import Completion
from memloop.scoring.comparison import wilson
from memloop.wire.chat import ChatMessage
from trainer.small.kinds import English
from trainer.small.reading import draw_reading, draw_reading_of_novel
from trainer.small.relating import draw_answers, draw_relating
from trainer.small.sample import Sample, Task
from trainer.small.writing import draw_writing

Reply = Callable[[Sequence[Sample]], list[str]]
"""Gives each sample's prompt to a model."""
UNKNOWN: Final = re.compile(r"don'?t know|haven'?t told|not sure|no information|can'?t tell", re.IGNORECASE)
_OF_OTHERS: Final = re.compile(r"\bthe user's [\w-]+(?: [\w-]+)? (?=[A-Z])", re.IGNORECASE)


@dataclass(slots=True)
class Scores:
    """Right and all of each figure."""

    right: dict[str, int] = field(default_factory=dict[str, int])
    of: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, figure: str, *, right: bool) -> None:
        """Count one result."""
        self.right[figure] = self.right.get(figure, 0) + right
        self.of[figure] = self.of.get(figure, 0) + 1

    def report(self) -> dict[str, list[float]]:
        """Return share, both ends of its 95 % interval, and count, by figure."""
        return {
            name: [round(value, 3) for value in (self.right[name] / of, *wilson(self.right[name] / of, of))] + [of]
            for name, of in self.of.items()
        }


def held_out_samples(count: int, *, seed: str = "evaluation") -> list[Sample]:
    """Draw ``count`` samples of each task from kinds, wordings, values and small talk that are never trained on."""
    english, rng = English("held_out", words_held_out=True), Random(seed)
    drawn: dict[Task, list[Sample]] = {
        "write": [draw_writing(english, rng) for _ in range(count)],
        "relate": [draw_relating(english, rng, sort=rng.choice(("updates", "new", "same")))[0] for _ in range(count)],
        "answer": [sample for _ in range(-(-count // 4)) for sample in draw_answers(english, rng, questions=4)][:count],
    }
    turns = [sample for _ in range(count // 2) for sample in draw_reading(english, rng)]
    of_novels = [sample for _ in range(count // 4) for sample in draw_reading_of_novel(english, rng)]
    return [*drawn["write"], *drawn["relate"], *drawn["answer"], *turns, *of_novels]


def judge(samples: Sequence[Sample], replies: Sequence[str]) -> Scores:
    """Score replies to samples."""
    scores = Scores()
    for sample, reply in zip(samples, replies, strict=True):
        match sample.task:
            case "write":
                _judge_writing(sample, reply, scores)
            case "answer":
                right = _answered(sample, reply)
                scores.add("answers", right=right)
                scores.add("answers known" if sample.golds else "abstains", right=right)
            case "conclude":
                said = parse_answer(Completion(reply)).text
                scores.add("reading answers", right=plain(said) == plain(sample.golds[0]))
            case _:
                right = reply.strip() == sample.reply
                scores.add(f"{sample.task} {sample.sort}", right=right)
                scores.add(sample.task, right=right)
    return scores


def _judge_writing(sample: Sample, reply: str, scores: Scores) -> None:
    lines, said = facts_of(reply), facts_of(sample.reply)
    if sample.sort in {"ignore", "wait"}:
        right = reply.strip() == sample.reply
        if sample.sort == "ignore":
            scores.add("small talk stored", right=bool(lines))
        else:
            scores.add("waits", right=right)
    else:
        pairs = list(zip(lines, sample.golds, strict=False))
        right = len(lines) == len(said) and all(
            plain(gold) in plain(line) and _subject(line) == _subject(due)
            for (line, gold), due in zip(pairs, said, strict=True)
        )
        turn = "" if sample.sort == "other" else sample.messages[-1].text()
        scores.add("false of the user", right=_claims_false(lines, said, turn))
    scores.add("writes", right=right)
    scores.add(f"writes {sample.sort}", right=right)


def _claims_false(lines: list[str], said: list[str], turn: str) -> bool:
    """Whether a line about the user holds what was said of somebody else, or was not said.

    A line in the words of a ``turn`` in which the user speaks of themselves was said, however the note due has it.
    """
    due = [_words(line) for line in said if not _subject(line)]
    return any(
        not _subject(line)
        and "user" in line.lower()
        and not any(_alike(_words(line), each) for each in due)
        and not _repeats(_words(line), _words(turn))
        for line in lines
    )


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= 0.6 * max(1, min(len(one), len(other)))


def _repeats(line: set[str], turn: set[str]) -> bool:
    """Whether a line repeats the words of a turn; one or two words alone prove nothing."""
    return len(line & turn) >= max(3, 0.6 * len(line))


def facts_of(reply: str) -> list[str]:
    """Return the facts that the served writer stores of a reply, without their topics."""
    found = find_memory_lines(Completion(reply))
    entries = found.entries if isinstance(found, FoundList) else []
    return [cast(dict[str, str], entry)["value"] for entry in entries]


def _subject(line: str) -> str:
    found = _OF_OTHERS.search(line)
    return found[0].lower() if found else ""


def _answered(sample: Sample, reply: str) -> bool:
    if not sample.golds:
        return bool(UNKNOWN.search(reply))
    return plain(sample.golds[0]) in plain(reply) and not UNKNOWN.search(reply)


def plain(text: str) -> str:
    """Return the text as golds are compared: in lower case, without articles and punctuation."""
    return " ".join(re.sub(r"\b(a|an|the)\b|[^\w\s:]", " ", text.lower()).split())


def _words(text: str) -> set[str]:
    return set(plain(text).split()) - {"user", "users", "is", "has", "in", "of", "to", "their"}


def with_examples(sample: Sample, rng: Random) -> Sample:
    """Return the sample after three of the training's, as turns of the same conversation."""
    english = English("train")
    match sample.task:
        case "write":
            shown = [draw_writing(english, rng, sort=sort) for sort in ("own", "ignore", "other")]
        case "relate":
            shown = [draw_relating(english, rng, sort=sort)[0] for sort in ("updates", "new", "same")]
        case "answer":
            shown = draw_answers(english, rng, questions=3, most_notes=4)
        case _:
            return sample
    system = tuple(message for message in sample.messages if message.role == "system")
    turns = [
        message
        for example in shown
        for message in (
            *(held for held in example.messages if held.role != "system"),
            ChatMessage(role="assistant", content=example.reply),
        )
    ]
    own = tuple(message for message in sample.messages if message.role != "system")
    return Sample(sample.task, (*system, *turns, *own), sample.reply, sample.sort, sample.golds)
