"""MemAgent: reads a document of any length through a window of fixed size. Source: arXiv 2507.02259.

The memory is a text of bounded length. Each chunk is read once, in order, together with the question and the memory,
and the reply overwrites the memory; the answer is given from the memory alone. n chunks cost n + 1 calls.
"""

from collections.abc import Sequence
from functools import partial

from memloop.loops.passes import read_in_order
from memloop.loops.reader import PLAIN, Reader, answer
from memloop.loops.results import PassResult, ReadResult
from memloop.loops.segments import read_segments
from memloop.loops.side_by_side import branches
from memloop.loops.steps import Answered, ReadStep
from memloop.ports import ChatModel, Chunks, Report, discard
from memloop.profiles import Profile
from memloop.wire.errors import InvalidRequest
from memloop.wire.reading import ReadingOptions


async def read_document(
    question: str,
    chunks: Chunks,
    *,
    model: ChatModel,
    profile: Profile,
    options: ReadingOptions = PLAIN,
    report: Report[ReadStep] = discard,
) -> ReadResult:
    """Read all chunks once and answer. Raises InvalidRequest on no chunks, and what the model raises."""
    reader = Reader(model, profile, report, options)
    return (await read_for_all([question], chunks, reader=reader))[0]


async def read_for_all(questions: Sequence[str], chunks: Chunks, *, reader: Reader) -> list[ReadResult]:
    """Read all chunks once for all questions, and answer each. Raises as ``read_document`` does."""
    read = await read_pass(questions, chunks, reader=reader)
    if len(questions) == 1:
        return [await _conclude(questions[0], read[0], reader)]
    works = [
        partial(_conclude_one, number, question, read[number], reader) for number, question in enumerate(questions)
    ]
    return await branches(works, report=reader.report)


async def read_pass(
    questions: Sequence[str], chunks: Chunks, *, reader: Reader, pass_number: int = 1
) -> list[PassResult]:
    """Run one pass over all chunks for all questions. Returns each question's memory at the end.

    Raises InvalidRequest when there is nothing to read.
    """
    if not len(chunks):
        raise InvalidRequest("the document is empty: there is nothing to read", param="document", code="empty_document")
    parallel = reader.options.parallel
    if parallel is None or len(chunks) == 1:
        return await read_in_order(questions, chunks, reader=reader, pass_number=pass_number)
    return await read_segments(questions, chunks, segments=parallel.segments, reader=reader, pass_number=pass_number)


async def _conclude(question: str, read: PassResult, reader: Reader) -> ReadResult:
    reply = await answer(question, read.memory, model=reader.model, profile=reader.profile)
    await reader.report(Answered(reply.answer, reply.boxed, reply.usage, truncated=reply.truncated))
    return ReadResult(
        answer=reply.answer,
        boxed=reply.boxed,
        raw_answer=reply.raw,
        memory=read.memory,
        usage=read.usage + reply.usage,
        degradations=read.degradations + reply.degradations,
    )


async def _conclude_one(
    number: int, question: str, read: PassResult, reader: Reader, report: Report[ReadStep]
) -> ReadResult:
    return await _conclude(question, read, reader.for_question(number, report))
