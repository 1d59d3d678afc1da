"""Finds the spans that support each statement of a memory and an answer.

One sentence of the document must support a statement of the memory. An answer is often a bare value, so its claim
includes the question: one sentence links the question to the value, or a chain of supported statements does
(:mod:`memloop.evidence.chains`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from memloop.evidence.chains import lead_to
from memloop.evidence.findings import Finding
from memloop.evidence.matching import Claim
from memloop.evidence.search import ClaimByMark, find_claims
from memloop.evidence.sentences import statements_of
from memloop.evidence.spans import TextSpan
from memloop.evidence.words import VERBS, Word, words_of
from memloop.ports import Chunks

_FEW = 3
_FEW_SIGNS = 6
"""A value in Chinese, Japanese or Korean is no longer than a name."""


async def evidence_for(question: str, *, memory: str, answer: str, chunks: Chunks) -> list[Finding]:
    """Return a finding for each statement of the memory, then of the answer. Raises the errors of loading a chunk.

    The search for chains is bounded: past ``MOST_LINKS`` links for all statements of the answer together, a statement
    that only a chain could support stays unsupported.
    """
    held, answered = statements_of(memory), statements_of(answer)
    asked = (words_of(question), words_of(question, commas=True))
    groups = [_readings(text, asked, bare=_is_bare(text)) for text in held]
    groups += [_readings(text, asked, bare=len(Claim.of(text).content) < _FEW or _is_bare(text)) for text in answered]
    found = iter(await find_claims([claim for group in groups for claim in group], chunks))
    spans = [_first_of([next(found) for _ in group]) for group in groups]
    memories = [Finding(text, "memory", own) for text, own in zip(held, spans, strict=False)]
    supported = [finding for finding in memories if finding.supported]
    chained = await asyncio.to_thread(lead_to, answered, question, supported)
    answers = [
        Finding(text, "output_text", chain or own)
        for text, chain, own in zip(answered, chained, spans[len(held) :], strict=True)
    ]
    return memories + answers


def _is_bare(text: str) -> bool:
    """Return whether the text is a value without a verb: names and numbers only, or a word or two."""
    words = words_of(text)
    signs = sum(word.is_sign for word in words)
    named = all(word.anchor for word in words if word.content) and signs <= _FEW_SIGNS
    return len(words) < _FEW or (named and not any(word.norm in VERBS for word in words))


def _readings(text: str, question: tuple[tuple[Word, ...], tuple[Word, ...]], *, bare: bool) -> list[ClaimByMark]:
    """Return the claims; a sentence must support one of them."""
    points, commas = Claim.of(text), Claim.of(text, commas=True)
    if not bare:
        return [(points, commas)]
    asked, asked_too = _besides(points, question[0]), _besides(commas, question[1])
    return [
        (Claim((*asked, *points.words)), Claim((*asked_too, *commas.words))),
        (Claim((*points.words, *asked)), Claim((*commas.words, *asked_too))),
    ]


def _besides(claim: Claim, question: tuple[Word, ...]) -> list[Word]:
    """Return the words of the question that the claim lacks; its signs of Chinese and kin need not all be found."""
    own = {word.stem for word in claim.content}
    return [replace(word, anchor=word.anchor and not word.is_sign) for word in question if word.stem not in own]


def _first_of(found: Sequence[Sequence[TextSpan]]) -> tuple[TextSpan, ...]:
    return next((tuple(spans) for spans in found if spans), ())
