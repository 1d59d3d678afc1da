"""``parallel``: segments of the document are read side by side, and a last pass reads their memories, in order."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from memloop.loops.notes import distinct
from memloop.loops.passes import read_in_order
from memloop.loops.reader import Reader, revise
from memloop.loops.results import PassResult
from memloop.loops.selection import Selection
from memloop.loops.side_by_side import branches
from memloop.loops.steps import ChunkRead, Merged, ReadStep
from memloop.ports import Chunks, Report
from memloop.wire.long_read import ReadDegradations
from memloop.wire.memory import Usage


async def read_segments(
    questions: Sequence[str], chunks: Chunks, *, segments: int, reader: Reader, pass_number: int
) -> list[PassResult]:
    """Read at most ``segments`` segments of equal length side by side, then merge their memories per question."""
    works = [
        partial(_read_segment, questions, segment, reader=reader, pass_number=pass_number, number=number)
        for number, segment in enumerate(segments_of(chunks, segments))
    ]
    read = await branches(works, report=_counted(reader.report, len(chunks), len(questions)))
    if len(questions) == 1:
        return [await _merge(questions[0], [parts[0] for parts in read], reader, pass_number)]

    async def merge_one(number: int, report: Report[ReadStep]) -> PassResult:
        own = reader.for_question(number, report)
        return await _merge(questions[number], [parts[number] for parts in read], own, pass_number)

    return await branches([partial(merge_one, number) for number in range(len(questions))], report=reader.report)


def segments_of(chunks: Chunks, segments: int) -> list[Selection]:
    """Return the document in consecutive segments, whose lengths differ by one chunk at most; none is empty."""
    count = min(segments, len(chunks))
    bounds = [number * len(chunks) // count for number in range(count + 1)]
    return [Selection(chunks, range(start, end)) for start, end in pairwise(bounds)]


async def _read_segment(
    questions: Sequence[str],
    part: Selection,
    report: Report[ReadStep],
    *,
    reader: Reader,
    pass_number: int,
    number: int,
) -> list[PassResult]:
    own = reader.branch(f"s{number}", report)
    return await read_in_order(questions, part, reader=own, pass_number=pass_number, segment=number)


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
