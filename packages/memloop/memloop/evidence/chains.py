"""Chains of supported statements of the memory that lead from the question to a statement of the answer.

Each statement of a chain shares a name with the next, one that neither question nor answer holds, and together they
cover the question. The number of chains grows with the cube of the number of statements, so the search has a budget.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memloop.evidence.findings import Finding, TextSpan
from memloop.evidence.matching import Claim
from memloop.evidence.words import words_of

MOST_LINKS = 30_000
"""Most links that one search tries, for all statements of an answer together: a fraction of a second."""
_LONGEST_CHAIN = 3
_COVERAGE = 0.85


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A supported statement as a link of a chain."""

    spans: tuple[TextSpan, ...]
    words: tuple[str, ...]
    stems: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, finding: Finding) -> "_Step":
        claim = Claim.of(finding.statement)
        stems = frozenset(word.stem for word in claim.content)
        return cls(finding.spans, tuple(word.norm for word in claim.words), stems, frozenset(claim.names))


_Chain = tuple[_Step, ...]


def lead_to(answers: Sequence[str], question: str, memories: Sequence[Finding]) -> list[tuple[TextSpan, ...]]:
    """For each statement of the answer the spans of its shortest chain; none without a chain within the budget."""
    search = _Search([_Step.of(finding) for finding in memories], Claim.of(question))
    return [search.spans_for(answer) for answer in answers]


class _Search:
    """Tries links between statements until ``MOST_LINKS`` are spent."""

    def __init__(self, steps: Sequence[_Step], asked: Claim) -> None:
        self._steps = steps
        self._content = asked.content
        self._names = frozenset(asked.names)
        self._first = [step for step in steps if not self._names or self._names & step.names]
        self._links = iter(range(MOST_LINKS))

    def spans_for(self, answer: str) -> tuple[TextSpan, ...]:
        """Return the spans of the shortest chain to the answer, or none."""
        wanted = [word.norm for word in words_of(answer) if word.content]
        given = frozenset(wanted)
        # The statements that hold the answer's words in order; a dict for its order and quick look-up
        candidates = [step for step in self._steps if wanted and wanted[0] in step.words]
        last = dict.fromkeys(step for step in self._spend(candidates) if _in_order(wanted, step.words))
        for chain in self._chains(last, given) if last else ():
            # It holds all names of the question and most of its other words
            stated = frozenset[str]().union(*(step.stems for step in chain))
            asked = [word.stem in stated for word in self._content if word.norm not in given]
            if self._names <= given.union(*(step.names for step in chain)) and sum(asked) >= _COVERAGE * len(asked):
                return tuple(span for step in chain for span in step.spans)
        return ()

    def _chains(self, last: Collection[_Step], answer: frozenset[str]) -> Iterator[_Chain]:
        """Yield the chains that end in one of ``last``, the shortest first."""
        chains: list[_Chain] = [(step,) for step in self._spend(self._first)]
        for left in range(_LONGEST_CHAIN - 1, -1, -1):
            yield from (chain for chain in chains if chain[-1] in last)
            among = self._steps if left > 1 else last
            chains = [longer for chain in chains if left for longer in self._longer(chain, answer, among)]

    def _longer(self, chain: _Chain, answer: frozenset[str], among: Collection[_Step]) -> Iterator[_Chain]:
        shared = chain[-1].names - self._names - answer
        for step in self._spend(among) if shared else ():
            if shared & step.names and step not in chain:
                yield (*chain, step)

    def _spend(self, steps: Iterable[_Step]) -> Iterator[_Step]:
        """Yield the steps, each for one link of the budget, until it is spent."""
        return (step for step, _ in zip(steps, self._links, strict=False))


def _in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words hold all wanted ones, in this order."""
    rest = iter(words)
    return all(word in rest for word in wanted)
