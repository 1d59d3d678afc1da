"""Looks for many claims in a document in one go, a chunk at a time, holding one chunk and the end of the last."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from memloop.evidence.matching import Claim, supports
from memloop.evidence.sentences import sentences_of
from memloop.evidence.spans import TextSpan
from memloop.evidence.values import has_decimal_commas
from memloop.evidence.words import folded, words_of
from memloop.ports import Chunk, Chunks

ClaimByMark: TypeAlias = tuple[Claim, Claim]
"""A claim as it reads where decimals have points, and where they have commas."""
SPANS_FOR_ONE = 3
"""Most spans for one claim: the first in the document."""
_LONGEST_SENTENCE_CHARS = 2000


async def find_claims(claims: Sequence[ClaimByMark], chunks: Chunks) -> list[list[TextSpan]]:
    """For each claim the spans that support it, in document order. Raises what loading a chunk raises."""
    found: list[list[TextSpan]] = [[] for _ in claims]
    tail = ""
    for index in range(len(chunks)):
        if all(len(spans) >= SPANS_FOR_ONE for spans in found):
            break
        chunk = await chunks.chunk(index)
        tail = await asyncio.to_thread(_look, chunk, tail, claims, found)
    return [[_in_its_chunk(span, chunks) for span in spans] for spans in found]


def _look(chunk: Chunk, tail: str, readings: Sequence[ClaimByMark], found: list[list[TextSpan]]) -> str:
    """Add what this chunk holds; the tail to look at again with the next: a sentence that may go on there."""
    text = tail + chunk.text
    base = chunk.start - len(tail)
    low, commas = folded(text), has_decimal_commas(text)
    claims = [by_mark[commas] for by_mark in readings]
    likely = [number for number, claim in enumerate(claims) if _open(found[number]) and _may_hold(low, claim)]
    for sentence in sentences_of(text) if likely else ():
        low = folded(sentence.text)
        hits = [number for number in likely if _may_hold(low, claims[number])]
        words = words_of(sentence.text, commas=commas) if hits and len(sentence.text) <= _LONGEST_SENTENCE_CHARS else ()
        for number in hits:
            if supports(words, claims[number]):
                _add(found[number], TextSpan(base + sentence.start, base + sentence.end, sentence.text, chunk.index))
    return _last_sentence(text[-_LONGEST_SENTENCE_CHARS:])


def _last_sentence(text: str) -> str:
    start = max((sentence.start for sentence in sentences_of(text)), default=len(text))
    return text[start:]


def _may_hold(low: str, claim: Claim) -> bool:
    return all(probe in low for probe in claim.probes)


def _open(spans: Sequence[TextSpan]) -> bool:
    return len(spans) < SPANS_FOR_ONE


def _add(spans: list[TextSpan], span: TextSpan) -> None:
    """A sentence that was cut at a chunk's end and matched already is replaced by the whole of it."""
    if spans and spans[-1].start == span.start:
        spans[-1] = span
    elif _open(spans):
        spans.append(span)


def _in_its_chunk(span: TextSpan, chunks: Chunks) -> TextSpan:
    index = span.chunk
    while index > 0 and chunks.span(index).start > span.start:
        index -= 1
    return TextSpan(span.start, span.end, span.text, index)
