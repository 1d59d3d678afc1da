"""One way into every read: the strategy, its options, one question or many."""

from collections.abc import Sequence
from dataclasses import replace

from memloop.loops.memagent import read_for_all
from memloop.loops.memreread import reread_for_all
from memloop.loops.reader import Reader
from memloop.loops.results import ReadResult
from memloop.loops.side_by_side import AtOnce
from memloop.ports import Chunks
from memloop.wire.long_read import Strategy

CALLS_AT_ONCE = 64
"""Most calls of one read in flight."""


async def read_questions(
    questions: Sequence[str], chunks: Chunks, *, strategy: Strategy, max_rereads: int, reader: Reader
) -> list[ReadResult]:
    """Return each question's result, in order. Raises as ``read_document`` does."""
    bounded = replace(reader, model=AtOnce(reader.model, CALLS_AT_ONCE))
    if strategy == "memagent":
        return await read_for_all(questions, chunks, reader=bounded)
    return await reread_for_all(questions, chunks, max_rereads=max_rereads, reader=bounded)
