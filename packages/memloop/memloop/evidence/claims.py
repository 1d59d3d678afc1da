"""The statements of a memory and an answer, each with the spans that support it, or with none.

A statement of the memory must be said by one sentence. An answer often is a bare value, and then its claim is made with
the question: one sentence says what was asked for with that value; or supported statements of the memory lead from the
question to the value, each sharing a name with the next, and between them say all that was asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memloop.evidence.matching import Claim, aligned
from memloop.evidence.search import find_claims
from memloop.evidence.sentences import statements_of
from memloop.evidence.spans import TextSpan
from memloop.evidence.words import VERBS, words_of
from memloop.ports import Chunks
from memloop.wire.long_read import EvidenceSource

_FEW = 3
_LONGEST_CHAIN = 3
_COVERAGE = 0.85


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and its spans; none means that nothing in the document says it in these words."""

    statement: str
    source: EvidenceSource
    spans: tuple[TextSpan, ...]

    @property
    def supported(self) -> bool:
        """Whether the document says it."""
        return bool(self.spans)


async def evidence_for(question: str, *, memory: str, answer: str, chunks: Chunks) -> list[Finding]:
    """A finding for each statement of the memory, then of the answer. Raises what loading a chunk raises."""
    held, said = statements_of(memory), statements_of(answer)
    groups = [*(_readings(text, question, bare=_is_bare(text)) for text in held)]
    groups += [_readings(text, question, bare=len(Claim.of(text).content) < _FEW or _is_bare(text)) for text in said]
    found = iter(await find_claims([claim for group in groups for claim in group], chunks))
    spans = [_first_of([next(found) for _ in group]) for group in groups]
    memories = [Finding(text, "memory", own) for text, own in zip(held, spans, strict=False)]
    supported = [finding for finding in memories if finding.supported]
    answers = [
        Finding(text, "output_text", _led_to(text, question, supported) or own)
        for text, own in zip(said, spans[len(held) :], strict=True)
    ]
    return memories + answers


def _is_bare(text: str) -> bool:
    """A value without a verb: names and numbers only, or a word or two."""
    words = words_of(text)
    named = all(word.anchor for word in words if word.content)
    return len(words) < _FEW or (named and not any(word.norm in VERBS for word in words))


def _readings(text: str, question: str, *, bare: bool) -> list[Claim]:
    """What a sentence must say for the statement to be supported: any of these."""
    claim = Claim.of(text)
    if not bare:
        return [claim]
    own = {word.stem for word in claim.content}
    asked = tuple(word for word in words_of(question) if word.stem not in own)
    return [Claim((*asked, *claim.words)), Claim((*claim.words, *asked))]


def _first_of(found: Sequence[Sequence[TextSpan]]) -> tuple[TextSpan, ...]:
    return next((tuple(spans) for spans in found if spans), ())


def _led_to(answer: str, question: str, memories: Sequence[Finding]) -> tuple[TextSpan, ...]:
    """The spans of the shortest chain of memories from the question to the answer; none when there is none."""
    wanted = [word.norm for word in words_of(answer) if word.content]
    asked = Claim.of(question)
    steps = [_Step(finding, Claim.of(finding.statement)) for finding in memories]
    for chain in _chains(steps, set(asked.anchors), set(wanted)):
        last = [word.norm for word in chain[-1].claim.words]
        if wanted and len(aligned(wanted, last)) == len(wanted) and _says_all(chain, asked, set(wanted)):
            return tuple(span for step in chain for span in step.finding.spans)
    return ()


@dataclass(frozen=True, slots=True)
class _Step:
    finding: Finding
    claim: Claim


def _chains(steps: Sequence[_Step], asked: set[str], answer: set[str]) -> Iterator[tuple[_Step, ...]]:
    """Statements that lead on from the question's names, each by a name that neither question nor answer holds."""
    ends = [(step,) for step in steps if not asked or asked & set(step.claim.anchors)]
    for _ in range(_LONGEST_CHAIN):
        yield from ends
        ends = [
            (*chain, step)
            for chain in ends
            for step in steps
            if step not in chain and set(chain[-1].claim.anchors) & set(step.claim.anchors) - asked - answer
        ]


def _says_all(chain: Sequence[_Step], asked: Claim, answer: set[str]) -> bool:
    said = {word.stem for step in chain for word in step.claim.content}
    wanted = [word.stem for word in asked.content if word.norm not in answer]
    names = {norm for step in chain for norm in step.claim.anchors} | answer
    return set(asked.anchors) <= names and sum(stem in said for stem in wanted) >= _COVERAGE * len(wanted)
