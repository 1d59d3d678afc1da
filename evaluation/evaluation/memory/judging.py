"""Answers questions from notes and judges the results. A permanent failure counts as wrong and keeps its reason."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar, get_args

from evaluation.memory.endpoint import Endpoint, Reply
from evaluation.memory.memos import Memos, Texts, label_of
from evaluation.memory.prompts import (
    ACCURACY,
    EXTRACTION,
    UPDATE,
    answer_prompt,
    judge_data,
    judge_system,
    verdict_of,
)
from evaluation.memory.records import Answered, Checked, Graded, Row, Tokens
from evaluation.memory.records import Check as CheckName
from evaluation.memory.records import Grade as GradeName
from evaluation.memory.records import Verdict as VerdictName
from evaluation.memory.rules import rule_of
from memloop.ports import Recalled
from memloop.scoring.lenient import exact_match
from memloop.wire.errors import MemloopError
from trainer.data.dialogues.dialogue import Conversation, Point, Question, Session
from trainer.data.dialogues.formats import Format

Choice = TypeVar("Choice", bound=str)
_STATES: tuple[VerdictName, ...] = ("correct", "wrong", "missed")
_GRADES: tuple[GradeName, ...] = get_args(GradeName)
_CHECKS: tuple[CheckName, ...] = get_args(CheckName)
ANSWER_TOKENS = 512
_JUDGE_TOKENS = 1024
_QUESTION_DATE = "%Y/%m/%d (%a) %H:%M"
"""LongMemEval's own form."""
_EVIDENCE = ' "evidence" lists the memories that lead to the reference.'
_OTHER = " It is other when none of these fits."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for one row and seed."""

    row: Row
    talk: Conversation
    question: Question
    seed: int

    def answered(self) -> Answered:
        """Create its record without an answer."""
        question = self.question
        golds = (question.answer,)
        return Answered(self.row, self.talk.id, question.id, self.seed, question.categories, golds)

    @property
    def today(self) -> datetime:
        """Return the date on which the question is asked."""
        return self.talk.asked_at(self.question)


class Examiner:
    """Answers with one model and judges with another, or the same, by the rules of the data's format.

    With ``memos`` LoCoMo and LongMemEval are answered and judged by its texts; HaluMem's judge of answers sees the
    evidence, and its judge of updates may find that no state fits, as that benchmark's code has it. ``exactly``: no
    judge is asked; an answer is correct that equals the reference but for case, articles and punctuation.
    """

    def __init__(
        self, model: Endpoint, judge: Endpoint, format_: Format, *, memos: Memos | None = None, exactly: bool = False
    ) -> None:
        self._model = model
        self._exactly = exactly
        self._judge = judge
        self._format: Format = format_
        self._memos = memos

    async def answer(self, asked: Asked, notes: Sequence[Recalled], *, search_s: float) -> Answered:
        """Answer the question from the notes and judge the answer."""
        system = rule_of(self._format, asked.question.categories).answer_system
        prompt = answer_prompt(asked.question.text, notes, today=asked.today)
        asking = self._model.ask(system, prompt, seed=asked.seed, max_tokens=ANSWER_TOKENS)
        return await self.judge(asked, asking, search_s=search_s)

    async def judge(self, asked: Asked, asking: Awaitable[Reply], *, search_s: float = 0.0) -> Answered:
        """Wait for the answer and judge it."""
        rule, question = rule_of(self._format, asked.question.categories), asked.question
        record = replace(asked.answered(), search_s=round(search_s, 4))
        try:
            reply = await asking
            record = replace(record, answer=reply.text, tokens=reply.tokens, answer_s=round(reply.seconds, 4))
            if self._exactly:
                return replace(record, verdict="correct" if exact_match(reply.text, record.golds) else "wrong")
            task, evidence = rule.task, dict[str, Sequence[str]]()
            if self._memos is not None and question.facts:
                task, evidence = task + _EVIDENCE, {"evidence": list(question.facts)}
            data = judge_data(question=question.text, reference=question.answer, answer=reply.text, **evidence)
            verdict, tokens = await self._judged(task, data, rule.verdicts, asked.seed)
        except MemloopError as error:
            return replace(record, error=summary_of(error))
        return replace(record, verdict=verdict, judge_tokens=tokens)

    async def answer_by(
        self, texts: Texts, asked: Asked, views: Mapping[str, Sequence[Recalled]], *, search_s: float
    ) -> Answered:
        """Answer the question and judge the answer by MemOS's texts, as often as it does."""
        context, question = texts.shown(views), asked.question
        record = replace(asked.answered(), search_s=round(search_s, 4))
        values = {"question": question.text, "gold_answer": question.answer, "golden_answer": question.answer}
        verdicts: list[VerdictName | None] = []
        try:
            if self._memos is not None:
                record = replace(record, context_tokens=self._memos.count(context))
            when = f"{asked.today:{_QUESTION_DATE}}"
            prompt = texts.answer.format_map({**values, "context": context, "question_date": when})
            reply = await self._model.ask(prompt, None, seed=asked.seed, max_tokens=_JUDGE_TOKENS)
            record = replace(record, answer=reply.text, tokens=reply.tokens, answer_s=round(reply.seconds, 4))
            judged = texts.judge.format_map({**values, "response": reply.text})
            for number in range(texts.judgements):
                said = await self._judge.ask(
                    texts.judge_system, judged, seed=asked.seed + number, max_tokens=_JUDGE_TOKENS
                )
                verdicts.append(label_of(said.text))
                record = replace(record, judge_tokens=record.judge_tokens + said.tokens)
        except MemloopError as error:
            return replace(record, error=summary_of(error))
        return replace(record, verdict=verdicts[0], judgements=tuple(verdicts))

    async def extraction(self, record: Graded, point: Point, memories: Sequence[str], *, seed: int) -> Graded:
        """Grade how much of a point was extracted from its session; without memories no judge is called."""
        if not memories:
            return replace(record, grade="missed")
        try:
            data = judge_data(expected=point.text, memories=list(memories))
            grade, tokens = await self._judged(EXTRACTION, data, _GRADES, seed)
        except MemloopError as error:
            return replace(record, error=summary_of(error))
        return replace(record, grade=grade, judge_tokens=tokens)

    async def update(self, record: Graded, point: Point, found: Sequence[Recalled], *, seed: int) -> Graded:
        """Return the record graded by the memory's current state of a changed fact."""
        data = judge_data(
            expected=point.text, replaced=list(point.replaces), memories=[memory.text for memory in found]
        )
        task, states = (UPDATE, _STATES) if self._memos is None else (UPDATE + _OTHER, get_args(VerdictName))
        try:
            verdict, tokens = await self._judged(task, data, states, seed)
        except MemloopError as error:
            return replace(record, error=summary_of(error))
        return replace(record, update=verdict, judge_tokens=tokens)

    async def accuracy(self, record: Checked, session: Session, memory: str, *, seed: int) -> Checked:
        """Check an extracted memory against its session's dialogue and expected points."""
        dialogue = [f"{turn.speaker}: {turn.text}" for turn in session.turns]
        expected = [point.text for point in session.points if not point.interferes]
        try:
            data = judge_data(dialogue=dialogue, expected=expected, memory=memory)
            check, tokens = await self._judged(ACCURACY, data, _CHECKS, seed)
        except MemloopError as error:
            return replace(record, error=summary_of(error))
        return replace(record, check=check, judge_tokens=tokens)

    async def _judged(self, task: str, data: str, choices: Sequence[Choice], seed: int) -> tuple[Choice | None, Tokens]:
        reply = await self._judge.ask(judge_system(task, choices), data, seed=seed, max_tokens=_JUDGE_TOKENS)
        return verdict_of(reply.text, choices), reply.tokens


def summary_of(error: MemloopError) -> str:
    """Format an error for the records."""
    return f"{type(error).__name__}: {error.message}"
