"""How many calls a read costs, for estimates and admission."""

from math import ceil

from memloop.wire.long_read import LongReadRequest
from memloop.wire.reading import ReadingOptions


def memagent_calls(chunks: int) -> int:
    """Exact: one call per chunk, and the answer."""
    return chunks + 1


def memreread_calls(chunks: int, *, rereads: int, max_rereads: int) -> int:
    """Calls of a read that used ``rereads`` of at most ``max_rereads``: (1+k)·N + (k + [k<R]) + 2k + 1."""
    judged = rereads + int(rereads < max_rereads)
    return (1 + rereads) * chunks + judged + 2 * rereads + 1


def pass_calls(chunks: int, *, options: ReadingOptions, memories_in_a_chunk: int) -> int:
    """Return the most calls of one pass: a judge after each chunk that it may end at, and the merges of segments."""
    judged = options.gated is not None and options.gated.exit and not options.gated.skip
    segments = min(options.parallel.segments, chunks) if options.parallel else 1
    return chunks * (2 if judged else 1) + ceil((segments - 1) / memories_in_a_chunk)


def max_calls(request: LongReadRequest, chunks: int, *, memories_in_a_chunk: int) -> int:
    """Return the most that a read can cost. A reread counts all chunks: it visits them when retrieval finds nothing."""
    calls = pass_calls(chunks, options=request.options, memories_in_a_chunk=memories_in_a_chunk)
    if request.strategy == "memagent":
        return len(request.asked) * memagent_calls(calls)
    rereads = request.max_rereads
    return len(request.asked) * memreread_calls(calls, rereads=rereads, max_rereads=rereads)
