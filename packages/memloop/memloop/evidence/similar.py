"""Finds, for statements without support, the one sentence of the document that is most similar.

A sentence is *similar* when its embedding is near the statement's, the statement's numbers and names are in it, and
both or none are negated. It may still say something else of the same names, such as *sold* for *bought*: similar means
that a reader should look there, and is never called supported.
"""

import asyncio
import heapq
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from memloop.evidence.findings import Finding, SimilarSpan, TextSpan, sentences_of
from memloop.evidence.words import Word, folded, words_of
from memloop.ports import Chunk, Chunks
from memloop.wire.store_requests import MOST_CHARS, MOST_PASSAGES, MOST_STATEMENTS

AT_LEAST: Final = 0.76
"""The least cosine of a similar sentence, for all-MiniLM-L6-v2 (``make bench-evidence``)."""
_LEAST_SHARED: Final = 2
"""Fewer words in common are no reason to compare."""


Similarity: TypeAlias = Callable[[Sequence[tuple[str, Sequence[str]]]], Awaitable[Sequence[Sequence[float]]]]
"""Returns the cosines of each statement with its passages, by an embedding model. Raises DependencyError."""


async def with_similar(
    findings: Sequence[Finding], chunks: Chunks, similarity: Similarity, *, at_least: float = AT_LEAST
) -> list[Finding]:
    """Return the findings; the first ``MOST_STATEMENTS`` without support get a similar sentence where there is one.

    A sentence that two chunks share is not looked at. Raises the errors of loading a chunk, and DependencyError.
    """
    found = [*findings]
    unsupported = [place for place, finding in enumerate(found) if not finding.supported]
    wanted = {place: _Wanted.of(found[place].statement) for place in unsupported[:MOST_STATEMENTS]}
    sought = [each for each in wanted.values() if each is not None]
    for index in range(len(chunks) if sought else 0):
        await asyncio.to_thread(_look, await chunks.chunk(index), sought)
    compared = {place: each for place, each in wanted.items() if each is not None and each.spans}
    pairs = [(each.text, [span.text for span in each.spans]) for each in compared.values()]
    cosines = await similarity(pairs) if pairs else ()
    for (place, each), row in zip(compared.items(), cosines, strict=True):
        cosine, span = max(zip(row, each.spans, strict=True), key=lambda pair: pair[0])
        if cosine >= at_least:
            found[place] = replace(found[place], similar=SimilarSpan(span, cosine))
    return found


@dataclass
class _Wanted:
    """A statement, and the sentences so far that share most of its words.

    ``stems`` are the words that say something, without their endings; ``anchors`` the numbers and names behind the
    first word, whose capital need not be a name's; ``probes`` those that stand in a folded text as they are.
    """

    text: str
    first: str
    first_is_name: bool
    """Until the document has the first word in lower case."""
    stems: frozenset[str]
    anchors: frozenset[str]
    probes: frozenset[str]
    negated: bool
    best: list[tuple[int, int, TextSpan]] = field(default_factory=list[tuple[int, int, TextSpan]])

    @classmethod
    def of(cls, text: str) -> "_Wanted | None":
        """Return what is sought; None for a statement that is too short or too long to be compared."""
        words = words_of(text)
        stems = frozenset(word.stem for word in words if word.content)
        if len(stems) < _LEAST_SHARED or len(text) > MOST_CHARS:
            return None
        named = [word for word in words[1:] if word.anchor and word.content]
        return cls(
            text,
            words[0].norm,
            first_is_name=words[0].anchor and words[0].content,
            stems=stems,
            anchors=frozenset(word.norm for word in named),
            probes=frozenset(word.probe for word in named if word.probe),
            negated=any(word.negates for word in words),
        )

    @property
    def spans(self) -> list[TextSpan]:
        """The sentences, in the order of the document; if the first word is a name, those that have it."""
        spans = sorted((span for _, _, span in self.best), key=lambda span: span.start)
        if not self.first_is_name:
            return spans
        return [span for span in spans if self.first in {word.norm for word in words_of(span.text)}]

    def may_be_in(self, low: str) -> bool:
        """Return whether a folded text may hold a similar sentence."""
        return all(probe in low for probe in self.probes) and sum(stem in low for stem in self.stems) >= _LEAST_SHARED

    def look_at(self, span: TextSpan, words: Sequence[Word]) -> None:
        """Keep the sentence if it may be similar and is among those that share the most words."""
        if not self.anchors <= {word.norm for word in words} or any(word.negates for word in words) != self.negated:
            return
        shared = len(self.stems & {word.stem for word in words})
        if shared >= _LEAST_SHARED:
            heapq.heappush(self.best, (shared, -span.start, span))
            if len(self.best) > MOST_PASSAGES:
                heapq.heappop(self.best)


def _look(chunk: Chunk, wanted: Sequence[_Wanted]) -> None:
    """Add the chunk's sentences that share words with the statements."""
    low = folded(chunk.text)
    for each in wanted:
        if each.first_is_name and re.search(rf"\b{re.escape(each.first)}\b", chunk.text):
            each.first_is_name = False
    likely = [each for each in wanted if each.may_be_in(low)]
    for sentence in sentences_of(chunk.text) if likely else ():
        low = folded(sentence.text)
        hits = [each for each in likely if each.may_be_in(low)] if len(sentence.text) <= MOST_CHARS else []
        words = words_of(sentence.text) if hits else ()
        for each in hits:
            each.look_at(
                TextSpan(chunk.start + sentence.start, chunk.start + sentence.end, sentence.text, chunk.index), words
            )
