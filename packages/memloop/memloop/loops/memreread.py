"""MemReread: asks for the missing fact after a first read, and reads again. Source: arXiv 2605.10268.

A first pass (MemAgent's) leaves a root memory. A judge accepts it in silence, or asks for one missing fact. The loop
then reads the document again from an empty memory for that sub-question alone, merges the sub-answer into the root
memory, and repeats. Sub-questions are never decomposed further. N chunks, k rereads of at most R cost
(1+k)·N + (k + [k<R]) + 2k + 1 calls; an unanswered sub-question saves its merge.

:func:`read_questions` is the way into every read, this loop's and MemAgent's.

Which chunks a reread visits: BM25 over the chunks, computed as they stream by, for the words of one question.

Only the counts of the question's own words are held: a few numbers for each chunk, however long the document is.
Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from math import log

from memloop.loops.memagent import read_for_all, read_pass
from memloop.loops.reader import PLAIN, Reader, answer, for_each_question, judge, revise
from memloop.loops.results import PassResult, ReadResult
from memloop.loops.side_by_side import AtOnce
from memloop.loops.steps import Answered, Integrated, Judged, ReadStep, RereadStarted, SubAnswered
from memloop.ports import ChatModel, Chunks, Report, Selection, discard
from memloop.profiles import Profile
from memloop.wire.long_read import ReadDegradations, Strategy, SubQuestion
from memloop.wire.memory import Usage
from memloop.wire.reading import ReadingOptions

_K1 = 1.5
_B = 0.75
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Counts:
    """A chunk's length in words, and how often it has each word of the query."""

    words: int
    hits: Counter[str]


async def best_positions(query: str, chunks: Chunks, *, top: int) -> list[int]:
    """Positions of the ``top`` best chunks, in document order; all of them when no chunk has a word of the query."""
    terms = set(_words(query))
    counts: list[_Counts] = []
    for position in range(len(chunks)):
        words = _words((await chunks.chunk(position)).text)
        counts.append(_Counts(len(words), Counter(word for word in words if word in terms)))
    mean = sum(each.words for each in counts) / max(1, len(counts)) or 1.0
    held = Counter(term for each in counts for term in each.hits)
    rarity = {term: log(1 + (len(counts) - held[term] + 0.5) / (held[term] + 0.5)) for term in sorted(terms)}
    scores = [
        sum(
            rarity[term] * hits * (_K1 + 1) / (hits + _K1 * (1 - _B + _B * each.words / mean))
            for term, hits in sorted(each.hits.items())
        )
        for each in counts
    ]
    best = nlargest(top, range(len(counts)), key=lambda position: (scores[position], -position))
    found = sorted(position for position in best if scores[position] > 0)
    return found or list(range(len(counts)))


def was_asked(question: str, earlier: Iterable[str]) -> bool:
    """Return whether an earlier question has the same words in the same order; case and punctuation do not count.

    Serving ends a reread for a repeated sub-question, and the reward punishes it.
    """
    return _words(question) in map(_words, earlier)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


CALLS_AT_ONCE = 64
"""Most calls of one read in flight."""


async def read_questions(
    questions: Sequence[str], chunks: Chunks, *, strategy: Strategy, max_rereads: int, reader: Reader
) -> list[ReadResult]:
    """Return each question's result, in order: one way into every read. Raises as ``read_document`` does."""
    bounded = replace(reader, model=AtOnce(reader.model, CALLS_AT_ONCE))
    if strategy == "memagent":
        return await read_for_all(questions, chunks, reader=bounded)
    return await reread_for_all(questions, chunks, max_rereads=max_rereads, reader=bounded)


async def reread_document(
    question: str,
    chunks: Chunks,
    *,
    model: ChatModel,
    profile: Profile,
    max_rereads: int = 2,
    options: ReadingOptions = PLAIN,
    report: Report[ReadStep] = discard,
) -> ReadResult:
    """Read, reread at most ``max_rereads`` times for what is missing, and answer. Raises as ``read_document`` does."""
    reader = Reader(model, profile, report, options)
    return (await reread_for_all([question], chunks, max_rereads=max_rereads, reader=reader))[0]


async def reread_for_all(
    questions: Sequence[str], chunks: Chunks, *, max_rereads: int, reader: Reader
) -> list[ReadResult]:
    """Read once for all questions, then run each one's rereads side by side. Raises as ``read_document`` does."""
    roots = await read_pass(questions, chunks, reader=reader)

    async def one(number: int, own: Reader) -> ReadResult:
        return await _Rereading(questions[number], chunks, roots[number], own).run(max_rereads)

    return await for_each_question(len(questions), one, reader=reader)


class _Rereading:
    """One question after its root read: its root memory, its sub-questions, and the cost so far.

    ``_history`` holds the sub-answers as results, ``_shown`` as the profile passes them on to the model.
    """

    def __init__(self, question: str, chunks: Chunks, root: PassResult, reader: Reader) -> None:
        self._question = question
        self._chunks = chunks
        self._reader = reader
        self._memory = root.memory
        self._history: tuple[SubQuestion, ...] = ()
        self._shown: tuple[SubQuestion, ...] = ()
        self._usage = root.usage
        self._degradations = root.degradations

    async def run(self, max_rereads: int) -> ReadResult:
        for _ in range(max_rereads):
            query = await self._judge()
            if query is None:
                break
            await self._reread(query)
        return await self._conclude()

    async def _judge(self) -> str | None:
        """Return the next sub-question; None when the memory suffices, nothing is new, or no verdict is usable."""
        verdict, query, usage = await judge(self._question, self._memory, self._shown, reader=self._reader)
        earlier = (self._question, *(past.question for past in self._history))
        if query is not None and not self._reader.options.parity and was_asked(query, earlier):
            verdict, query = "repeated", None
        self._spend(usage, ReadDegradations(unusable=int(verdict == "unusable")))
        await self._reader.report(Judged(verdict, query, usage))
        return query

    async def _reread(self, query: str) -> None:
        """Read for the sub-question alone, answer it, and merge the answer into the root memory."""
        pass_number = len(self._history) + 2
        chunks, retrieved = self._chunks, self._reader.options.retrieved
        if retrieved is not None:
            chunks = Selection(chunks, await best_positions(query, chunks, top=retrieved.chunks))
        await self._reader.report(RereadStarted(pass_number, query, len(chunks)))
        (read,) = await read_pass([query], chunks, reader=self._reader, pass_number=pass_number)
        self._spend(read.usage, read.degradations)
        parity = self._reader.options.parity
        reply = await answer(query, read.memory, model=self._reader.model, profile=self._reader.profile, whole=parity)
        self._spend(reply.usage, reply.degradations)
        shown = reply.raw if self._reader.profile.subanswer == "whole" else reply.answer
        self._history += (SubQuestion(question=query, answer=reply.answer),)
        self._shown += (SubQuestion(question=query, answer=shown),)
        await self._reader.report(SubAnswered(query, reply.answer, reply.usage, truncated=reply.truncated))
        if reply.answer or parity:
            prompt = self._reader.profile.prompt(
                "integrate", question=self._question, memory=self._memory, subquestion=query, subanswer=shown
            )
            revision = await revise(self._memory, prompt, reader=self._reader)
            self._memory = revision.memory
            self._spend(revision.usage, revision.degradations)
            step = Integrated(revision.memory, revision.kept, revision.truncated, revision.usage)
            await self._reader.report(step)

    async def _conclude(self) -> ReadResult:
        """Return the final answer, from the root memory."""
        reply = await answer(self._question, self._memory, model=self._reader.model, profile=self._reader.profile)
        self._spend(reply.usage, reply.degradations)
        await self._reader.report(Answered(reply.answer, reply.boxed, reply.usage, truncated=reply.truncated))
        return ReadResult(
            answer=reply.answer,
            boxed=reply.boxed,
            raw_answer=reply.raw,
            memory=self._memory,
            usage=self._usage,
            subquestions=self._history,
            degradations=self._degradations,
        )

    def _spend(self, usage: Usage, degradations: ReadDegradations) -> None:
        self._usage += usage
        self._degradations += degradations
