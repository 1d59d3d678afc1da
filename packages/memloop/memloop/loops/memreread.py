"""MemReread: when a first read does not suffice, ask what is missing and read again. Source: arXiv 2605.10268.

A first pass (MemAgent's) leaves a root memory. A judge looks at it and stays silent, or asks for one missing fact; the
document is read again from an empty memory for that sub-question alone; the sub-answer is merged into the root memory;
and so on. Sub-questions are never decomposed further. N chunks, k rereads of at most R cost
(1+k)·N + (k + [k<R]) + 2k + 1 calls; an unanswered sub-question saves its merge.
"""

import re
from collections.abc import Sequence

from memloop.loops.memagent import answer, read_pass, revise
from memloop.loops.parsing import parse_query
from memloop.loops.results import ReadResult, Slips
from memloop.loops.steps import Answered, Integrated, Judged, ReadStep, RereadStarted, SubAnswered
from memloop.ports import ChatModel, Chunks, Report, discard
from memloop.profiles import Markup, Profile, neutralise
from memloop.wire.long_read import SubQuestion
from memloop.wire.memory import Usage


async def reread_document(
    question: str,
    chunks: Chunks,
    *,
    model: ChatModel,
    profile: Profile,
    max_rereads: int = 2,
    report: Report[ReadStep] = discard,
) -> ReadResult:
    """Read, reread at most ``max_rereads`` times for what is missing, and answer. Raises as ``read_document`` does."""
    reading = _Reading(question, chunks, model, profile, report)
    await reading.read_root()
    for _ in range(max_rereads):
        query = await reading.judge()
        if query is None:
            break
        await reading.reread(query)
    return await reading.conclude()


class _Reading:
    """One reread in progress: the root memory, the history of sub-questions, and what it cost so far."""

    def __init__(
        self,
        question: str,
        chunks: Chunks,
        model: ChatModel,
        profile: Profile,
        report: Report[ReadStep],
    ) -> None:
        self._question = question
        self._chunks = chunks
        self._model = model
        self._profile = profile
        self._report = report
        self._memory = profile.empty_memory
        self._history: tuple[SubQuestion, ...] = ()
        self._usage = Usage()
        self._slips = Slips()

    async def read_root(self) -> None:
        self._memory = await self._read(self._question, pass_number=1)

    async def judge(self) -> str | None:
        """The sub-question to read for, or None when rereading is over: enough, nothing new, or no usable verdict."""
        prompt = self._profile.prompt(
            "judge",
            question=self._question,
            memory=self._memory,
            query_history=history_lines(self._history, nothing=self._profile.no_history),
        )
        completion = await self._model.complete(prompt)
        verdict, query = parse_query(completion)
        if query is not None and self._was_asked(query):
            verdict, query = "repeated", None
        self._spend(completion.usage, Slips(unusable=int(verdict == "unusable")))
        await self._report(Judged(verdict, query, completion.usage))
        return query

    async def reread(self, query: str) -> None:
        """Read all chunks for the sub-question alone, answer it, and merge the answer into the root memory."""
        pass_number = len(self._history) + 2
        await self._report(RereadStarted(pass_number, query))
        sub_memory = await self._read(query, pass_number=pass_number)
        reply = await answer(query, sub_memory, model=self._model, profile=self._profile)
        self._spend(reply.usage, reply.slips)
        self._history += (SubQuestion(question=query, answer=reply.answer),)
        await self._report(SubAnswered(query, reply.answer, reply.usage))
        if reply.answer:
            await self._integrate(query, reply.answer)

    async def conclude(self) -> ReadResult:
        """The final answer, from the root memory."""
        reply = await answer(self._question, self._memory, model=self._model, profile=self._profile)
        self._spend(reply.usage, reply.slips)
        await self._report(Answered(reply.answer, reply.boxed, reply.usage))
        return ReadResult(
            answer=reply.answer,
            boxed=reply.boxed,
            raw_answer=reply.raw,
            memory=self._memory,
            usage=self._usage,
            subquestions=self._history,
            slips=self._slips,
        )

    async def _read(self, question: str, *, pass_number: int) -> str:
        read = await read_pass(
            question,
            self._chunks,
            model=self._model,
            profile=self._profile,
            report=self._report,
            pass_number=pass_number,
        )
        self._spend(read.usage, read.slips)
        return read.memory

    async def _integrate(self, query: str, sub_answer: str) -> None:
        prompt = self._profile.prompt(
            "integrate", question=self._question, memory=self._memory, subquestion=query, subanswer=sub_answer
        )
        revision = await revise(self._memory, prompt, model=self._model)
        self._memory = revision.memory
        self._spend(revision.usage, revision.slips)
        await self._report(Integrated(revision.memory, revision.kept, revision.truncated, revision.usage))

    def _was_asked(self, query: str) -> bool:
        earlier = (self._question, *(past.question for past in self._history))
        return _normal(query) in {_normal(past) for past in earlier}

    def _spend(self, usage: Usage, slips: Slips) -> None:
        self._usage += usage
        self._slips += slips


def history_lines(history: Sequence[SubQuestion], *, nothing: str) -> Markup:
    """``<query>q</query> <result>a</result>`` for each sub-question, their texts made harmless."""
    lines = (
        f"<query>{neutralise(past.question)}</query> <result>{neutralise(past.answer)}</result>" for past in history
    )
    return Markup("\n".join(lines) or nothing)


def _normal(query: str) -> str:
    return " ".join(re.findall(r"\w+", query.casefold()))
