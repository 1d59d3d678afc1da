r"""The no-context filter: drops questions that a model answers without documents, as they teach no reading.

Each model is asked ``samples`` times at temperature 1 and top_p 0.7, at most 512 tokens, until one answer is right
(MemAgent, arXiv 2507.02259, with two 7B models and two samples). Every verdict is on disk before its slot asks the next
question, so a killed run repeats only the questions in flight.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import TypeAdapter

from memloop.ports import ChatModel, Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop.wire.errors import EngineError
from trainer.data.bounded_map import bounded_map
from trainer.data.hotpot import HotpotQuestion, questions
from trainer.data.journal import Journal
from trainer.data.json_rows import rows
from trainer.data.retry_policy import RetryPolicy
from trainer.objectives.answer_reward import AnswerScore, answer_reward

SAMPLING = Sampling(max_tokens=512, temperature=1.0, top_p=0.7)
_QUESTIONS_OWN_FAULT = frozenset({400, 413, 422})
_ASKED = "Answer from what you know, briefly, and put the answer alone into \\boxed{}.\n\nQuestion: "


ANYWHERE: Final = "anywhere"
FilterScore: TypeAlias = AnswerScore | Literal["anywhere"]
"""``anywhere``: the gold answer's letters stand anywhere in the whole reply, in any case, or the strict box is right,
as MemAgent's filter has it.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one question. ``asked`` counts calls; ``refused``: an endpoint rejected the question."""

    key: str
    answerable: bool
    asked: int
    said: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class NoContextFilter:
    """The models, the samples per model, the rule for a right answer, and the number of concurrent questions.

    The journal records the names of ``models``.
    """

    models: Sequence[tuple[str, ChatModel]]
    samples: int = 2
    score: FilterScore = "sub_em"
    places: int = 16
    retries: RetryPolicy = RetryPolicy()  # noqa: RUF009 - frozen

    def open_journal(self, path: Path) -> Journal[Verdict]:
        """Open the verdicts so far. Raises DataError when they are of other models or options."""
        run: dict[str, object] = {
            "no_context": 1,
            "models": [name for name, _ in self.models],
            "samples": self.samples,
            "score": self.score,
        }
        return Journal(path, run, records=TypeAdapter(Verdict), key_of=lambda verdict: verdict.key)

    async def judge(self, asked: Iterator[HotpotQuestion], journal: Journal[Verdict]) -> None:
        """Record a verdict for every question. Raises MemloopError when an endpoint fails on every retry."""
        await bounded_map(self.places, _still_open(asked, journal), partial(self._settle, journal))

    async def _settle(self, journal: Journal[Verdict], question: HotpotQuestion) -> None:
        journal.append(await self._verdict(question))

    async def _verdict(self, question: HotpotQuestion) -> Verdict:
        key, asked = key_of(question), 0
        prompt = Prompt((ChatMessage(role="user", content=_ASKED + question.question),), SAMPLING)
        for _, model in self.models:
            for _ in range(self.samples):
                asked += 1
                try:
                    reply = await self.retries.get(partial(model.complete, prompt))
                except EngineError as error:
                    if error.engine_status not in _QUESTIONS_OWN_FAULT:
                        raise
                    return Verdict(key, answerable=False, asked=asked, refused=str(error)[:200])
                if self._is_right(reply.content, question.answer):
                    return Verdict(key, answerable=True, asked=asked, said=reply.content[:200])
        return Verdict(key, answerable=False, asked=asked)

    def _is_right(self, reply: str, gold: str) -> bool:
        """Return whether the reply holds the answer, by this filter's score."""
        if self.score != ANYWHERE:
            return answer_reward(reply, [gold], score=self.score) == 1.0
        return gold.lower() in reply.lower() or answer_reward(reply, [gold], score="strict") == 1.0


def key_of(question: HotpotQuestion) -> str:
    """Return the key of a question: the same question with the same answer is asked once."""
    return hashlib.sha256(f"{question.question}\0{question.answer}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def write_kept(source: Path, journal: Journal[Verdict], out: Path) -> tuple[int, int]:
    """Write the questions that no model answered, as in the source; return the kept and dropped counts.

    Raises DataError, and KeyError for a question without a verdict.
    """
    kept = dropped = 0
    unfinished = out.with_name(f".{out.name}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        for (_, row), question in zip(rows(source), questions(source), strict=True):
            verdict = journal.get(key_of(question))
            if verdict is None:
                raise KeyError(question.question)
            if verdict.answerable:
                dropped += 1
            else:
                kept += 1
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    unfinished.replace(out)
    return kept, dropped


def _still_open(asked: Iterator[HotpotQuestion], journal: Journal[Verdict]) -> Iterator[HotpotQuestion]:
    taken = set[str]()
    for question in asked:
        key = key_of(question)
        if key not in taken and journal.get(key) is None:
            taken.add(key)
            yield question
