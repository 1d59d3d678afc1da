"""Finds the spans that support each statement of a memory and an answer.

One sentence of the document must support a statement of the memory. An answer is often a bare value, so its claim
includes the question: one sentence links the question to the value, or a chain of supported statements does
(:mod:`memloop.evidence.chains`).

Looks for many claims in a document in one go, a chunk at a time, holding one chunk and the end of the last.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from memloop.evidence.chains import lead_to
from memloop.evidence.findings import Finding, TextSpan, sentences_of, statements_of
from memloop.evidence.function_words import VERBS
from memloop.evidence.matching import Claim, supports
from memloop.evidence.tables import records_of, rows_of
from memloop.evidence.values import has_decimal_commas
from memloop.evidence.words import Word, folded, words_of
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
    longest = [(number, claims[number].probes[0]) for number in likely]
    for sentence in sentences_of(text) if likely else ():
        low = folded(sentence.text)
        hits = [number for number, probe in longest if probe in low and _may_hold(low, claims[number])]
        words = words_of(sentence.text, commas=commas) if hits and len(sentence.text) <= _LONGEST_SENTENCE_CHARS else ()
        for number in hits:
            if supports(words, claims[number]):
                spans = found[number]
                span = TextSpan(base + sentence.start, base + sentence.end, sentence.text, chunk.index)
                # A sentence that was cut at a chunk's end and matched already is replaced by the whole of it
                if spans and spans[-1].start == span.start:
                    spans[-1] = span
                elif _open(spans):
                    spans.append(span)
    for row in chain(records_of(text), rows_of(text)) if likely else ():
        low = folded(row.text)
        for number in likely:
            if _may_hold(low, claims[number]) and _open(found[number]) and row.supports(claims[number], commas=commas):
                found[number].append(TextSpan(base + row.span.start, base + row.span.end, row.span.text, chunk.index))
    end = text[-_LONGEST_SENTENCE_CHARS:]
    return end[max((sentence.start for sentence in sentences_of(end)), default=len(end)) :]


def _may_hold(low: str, claim: Claim) -> bool:
    return all(probe in low for probe in claim.probes)


def _open(spans: Sequence[TextSpan]) -> bool:
    return len(spans) < SPANS_FOR_ONE


def _in_its_chunk(span: TextSpan, chunks: Chunks) -> TextSpan:
    index = span.chunk
    while index > 0 and chunks.span(index).start > span.start:
        index -= 1
    return TextSpan(span.start, span.end, span.text, index)


_FEW = 3
_FEW_SIGNS = 6
_FEW_SIGNS_BESIDE = 2
"""A name in Chinese, Japanese or Korean is no longer, nor are the signs beside a value."""


_DEFINITE = re.compile(r"(?:erne|ene|e?[nt])$")
_IS = frozenset(("er", "är", "udgør", "utgjør", "uppgår till"))


async def evidence_for(question: str, *, memory: str, answer: str, chunks: Chunks) -> list[Finding]:
    """Return a finding for each statement of the memory, then of the answer. Raises the errors of loading a chunk.

    The search for chains is bounded: past ``MOST_LINKS`` links for all statements of the answer together, a statement
    that only a chain could support stays unsupported.
    """
    held, answered = statements_of(memory), statements_of(answer)
    asked = (words_of(question), words_of(question, commas=True))
    groups = [_readings(text, asked) for text in held] + [_readings(text, asked, answers=True) for text in answered]
    found = iter(await find_claims([claim for group in groups for claim in group], chunks))
    spans_of = [[next(found) for _ in group] for group in groups]
    spans = [next((tuple(spans) for spans in each if spans), ()) for each in spans_of]
    memories = [Finding(text, "memory", own) for text, own in zip(held, spans, strict=False)]
    supported = [finding for finding in memories if finding.supported]
    chained = await asyncio.to_thread(lead_to, answered, question, supported)
    answers = [
        Finding(text, "output_text", chain or own)
        for text, chain, own in zip(answered, chained, spans[len(held) :], strict=True)
    ]
    return memories + answers


def _is_bare(words: Sequence[Word]) -> bool:
    """Return whether this is a value without a verb: names and numbers only, or a word or two."""
    signs = sum(word.is_sign for word in words)
    most = _FEW_SIGNS_BESIDE if any(word.is_value for word in words) else _FEW_SIGNS
    named = all(word.anchor for word in words if word.content) and signs <= most
    return len(words) < _FEW or (named and not any(word.norm in VERBS for word in words))


def _readings(
    text: str, question: tuple[tuple[Word, ...], tuple[Word, ...]], *, answers: bool = False
) -> list[ClaimByMark]:
    """Return the claims; a sentence must support one of them. What ``answers`` in few words leans on the question."""
    points, commas = Claim.of(text), Claim.of(text, commas=True)
    if not (_is_bare(points.words) or (answers and len(points.content) < _FEW)):
        return [(points, commas), *_as_label(points, commas)]
    asked, asked_too = _besides(points, question[0]), _besides(commas, question[1])
    says_much = len(points.words) > (1 if any(word.unit for word in points.words) else _FEW)
    whole = [(replace(points, is_whole=True), replace(commas, is_whole=True))] if says_much else []
    return [
        (Claim((*asked, *points.words)), Claim((*asked_too, *commas.words))),
        (Claim((*points.words, *asked)), Claim((*commas.words, *asked_too))),
        *whole,
    ]


def _as_label(*readings: Claim) -> list[ClaimByMark]:
    """Return *Dato: 5 maj* for *Datoen er den 5. maj*: Danish, Norwegian and Swedish nouns end in their article."""
    first, second = (*readings[0].words, *readings[0].words[:1])[:2]
    noun = _DEFINITE.sub("", first.norm)
    if second.norm not in _IS or noun == first.norm:
        return []
    label = replace(first, norm=noun, stem=noun)
    points, commas = (Claim((label, *reading.content[1:]), is_whole=True) for reading in readings)
    return [(points, commas)]


def _besides(claim: Claim, question: tuple[Word, ...]) -> list[Word]:
    """Return the words of the question that the claim lacks; its signs of Chinese and kin need not all be found."""
    own = {word.stem for word in claim.content}
    return [
        replace(word, anchor=word.anchor and not word.is_sign, asked=True) for word in question if word.stem not in own
    ]
