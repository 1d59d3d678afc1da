"""MemAgent: reads a document of any length through a window of fixed size. Source: arXiv 2507.02259.

The memory is a text of bounded length. Each chunk is read once, in order, together with the question and the memory,
and the reply overwrites the memory; the answer is given from the memory alone. n chunks cost n + 1 calls.

``parallel``: segments of the document are read side by side, and a last pass reads their memories, in order.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from memloop.loops.notes import distinct
from memloop.loops.passes import read_in_order
from memloop.loops.reader import PLAIN, Reader, answer, for_each_question, revise
from memloop.loops.results import PassResult, ReadResult
from memloop.loops.side_by_side import branches
from memloop.loops.steps import Answered, ChunkRead, Merged, ReadStep
from memloop.ports import ChatModel, Chunks, Report, Selection, discard
from memloop.profiles import Profile
from memloop.wire.errors import InvalidRequest
from memloop.wire.long_read import ReadDegradations
from memloop.wire.memory import Usage
from memloop.wire.reading import ReadingOptions


async def read_segments(
    questions: Sequence[str], chunks: Chunks, *, segments: int, reader: Reader, pass_number: int
) -> list[PassResult]:
    """Read at most ``segments`` segments of equal length side by side, then merge their memories per question."""

    async def read_one(number: int, part: Selection, report: Report[ReadStep]) -> list[PassResult]:
        own = reader.branch(f"s{number}", report)
        return await read_in_order(questions, part, reader=own, pass_number=pass_number, segment=number)

    works = [partial(read_one, number, part) for number, part in enumerate(segments_of(chunks, segments))]
    read = await branches(works, report=_counted(reader.report, len(chunks), len(questions)))

    async def merge_one(number: int, own: Reader) -> PassResult:
        return await _merge(questions[number], [parts[number] for parts in read], own, pass_number)

    return await for_each_question(len(questions), merge_one, reader=reader)


def segments_of(chunks: Chunks, segments: int) -> list[Selection]:
    """Return the document in consecutive segments, whose lengths differ by one chunk at most; none is empty."""
    count = min(segments, len(chunks))
    bounds = [number * len(chunks) // count for number in range(count + 1)]
    return [Selection(chunks, range(start, end)) for start, end in pairwise(bounds)]


def _counted(report: Report[ReadStep], chunks: int, questions: int) -> Report[ReadStep]:
    """Return the report with ``done`` and ``chunks_total`` of the whole pass instead of one segment's."""
    done = [0] * questions

    async def forward(step: ReadStep) -> None:
        if isinstance(step, ChunkRead):
            done[step.asked] += 1
            step = replace(step, done=done[step.asked], chunks_total=chunks)
        await report(step)

    return forward


async def _merge(question: str, parts: Sequence[PassResult], reader: Reader, pass_number: int) -> PassResult:
    """Merge to one memory: read the others as sections into the first segment's, as many at once as fit."""
    usage, degradations = (
        sum((part.usage for part in parts), Usage()),
        sum((part.degradations for part in parts), ReadDegradations()),
    )
    empty = reader.profile.empty_memory
    memory, *others = distinct((part.memory for part in parts), empty) or [empty]
    size = reader.profile.budget.memories_in_a_chunk
    for start in range(0, len(others), size):
        section = "\n\n".join(others[start : start + size])
        prompt = reader.profile.prompt("read", problem=question, memory=memory, section=section)
        revision = await revise(memory, prompt, reader=reader)
        memory, usage, degradations = revision.memory, usage + revision.usage, degradations + revision.degradations
        left = max(0, len(others) - start - size)
        await reader.report(Merged(pass_number, memory, left, revision.kept, revision.truncated, revision.usage))
    return PassResult(memory, usage, degradations)


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

    async def conclude_one(number: int, own: Reader) -> ReadResult:
        return await _conclude(questions[number], read[number], own)

    return await for_each_question(len(questions), conclude_one, reader=reader)


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
