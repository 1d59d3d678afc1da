"""Checks evidence against the facts that the documents were made of, independently of the matcher.

The truth is extracted from the document by the world's own sentence patterns. A span is right when it contains the fact
that the statement claims. Beside the model's statements, each fact is claimed with a wrong value, name or attribute:
each of those must be marked as unsupported, unless the document happens to contain it.
"""

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.long_read_strategies.measure import Way, documents_of, read_one
from memloop.evidence import Finding, evidence_for
from memloop.loops.results import ReadResult
from memloop.ports import ChatModel
from memloop.profiles import Profile
from trainer.tiny.documents import Document
from trainer.tiny.world import PEOPLE, PERSON_CODES, PLACE_CODES, PLACES, VALUES, Fact

_FACT = re.compile(r"The ([a-z ]+) (?:of|for) ([A-Z]\w+) (?:is|was) (\w+)\.")


@dataclass
class Tally:
    """Counts over all documents."""

    facts_used: int = 0
    facts_found: int = 0
    spans: int = 0
    spans_right: int = 0
    unsupported: int = 0
    unsupported_unmarked: int = 0
    false_claims: int = 0
    false_claims_unmarked: int = 0
    answers_right: int = 0
    answers_right_supported: int = 0

    def cells(self) -> dict[str, float]:
        """Return the figures."""
        return {
            **vars(self),
            "recall": round(self.facts_found / max(1, self.facts_used), 4),
            "span_precision": round(self.spans_right / max(1, self.spans), 4),
        }


async def measured_evidence(model: ChatModel, profile: Profile, *, tokens: int, count: int, seed: int) -> Tally:
    """Measure documents of one and two hops with a distractor in each chunk, read by MemReread."""
    tally, rng = Tally(), random.Random(seed)
    for hops in (1, 2):
        documents = documents_of(profile, tokens=tokens, hops=hops, count=count, seed=seed, distractors_per_chunk=1.0)
        way = Way("memreread", hops, "memreread")
        results = await asyncio.gather(*(read_one(model, profile, way, each) for each in documents))
        for document, result in zip(documents, results, strict=True):
            await _count(tally, document, result, rng)
    return tally


async def _count(tally: Tally, document: Document, result: ReadResult, rng: random.Random) -> None:
    told = set(facts_in("".join(chunk.text for chunk in document.chunks)))
    findings = await _findings(document, result.memory, result.answer)
    memory = [finding for finding in findings if finding.source == "memory"]
    answer = [finding for finding in findings if finding.source == "output_text"]
    right = result.answer == document.answer
    for finding in memory:
        claimed = set(facts_in(finding.statement))
        _count_statement(tally, finding, true=bool(claimed) and claimed <= told)
        for span in finding.spans:
            tally.spans += 1
            tally.spans_right += claimed <= set(facts_in(span.text))
    for finding in answer:
        _count_statement(tally, finding, true=right)
    if right:
        _count_use(tally, answer, told & set(facts_in(result.memory)))
    await _count_false_claims(tally, document, told, rng)


def _count_statement(tally: Tally, finding: Finding, *, true: bool) -> None:
    if not true:
        tally.unsupported += 1
        tally.unsupported_unmarked += finding.supported


def _count_use(tally: Tally, answer: Sequence[Finding], used: set[Fact]) -> None:
    """Check that each planted fact in the memory, on which a right answer rests, stands in a span of the answer."""
    tally.answers_right += 1
    tally.answers_right_supported += all(finding.supported for finding in answer)
    shown = {fact for finding in answer for span in finding.spans for fact in facts_in(span.text)}
    tally.facts_used += len(used)
    tally.facts_found += len(used & shown)


async def _count_false_claims(tally: Tally, document: Document, told: set[Fact], rng: random.Random) -> None:
    claims = [each for fact in rng.sample(sorted(told, key=str), min(8, len(told))) for each in _twisted(rng, fact)]
    false = [each for each in claims if each not in told]
    findings = await _findings(document, " ".join(each.sentence() for each in false), "")
    tally.false_claims += len(findings)
    tally.false_claims_unmarked += sum(finding.supported for finding in findings)


async def _findings(document: Document, memory: str, answer: str) -> list[Finding]:
    return await evidence_for(document.question, memory=memory, answer=answer, chunks=document.chunks)


def facts_in(text: str) -> Iterator[Fact]:
    """Yield the facts that a text states in the world's patterns."""
    return (Fact(entity, attribute, value) for attribute, entity, value in _FACT.findall(text))


def _twisted(rng: random.Random, fact: Fact) -> tuple[Fact, ...]:
    person = fact.entity in PEOPLE
    return (
        replace(fact, value=rng.choice(PLACES if fact.value in PLACES else VALUES)),
        replace(fact, entity=rng.choice(PEOPLE if person else PLACES)),
        replace(fact, attribute=rng.choice(PERSON_CODES if person else PLACE_CODES)),
    )
