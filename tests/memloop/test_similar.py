"""Similar evidence: a close paraphrase is shown beside what is supported, and never called supported."""

from collections.abc import Sequence

import pytest

from memloop.evidence import Finding, TextSpan, with_similar
from memloop.evidence.similar import AT_LEAST
from memloop.ports import Chunk, HeldChunks
from memloop.wire.errors import Unavailable
from memloop.wire.store_requests import MOST_PASSAGES, MOST_STATEMENTS

DOCUMENT = "Every ship was late. Marta keeps the spare key of locker 482 in a tin. Berta sings on every stage."
PARAPHRASE = "The extra key of locker 482 is kept by Marta."


class _Asked:
    """Calls every sentence equally near, and keeps what it was asked."""

    def __init__(self, cosine: float = 0.9) -> None:
        self.pairs: list[tuple[str, Sequence[str]]] = []
        self._cosine = cosine

    async def __call__(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[float]]:
        self.pairs += pairs
        return [[self._cosine for _ in passages] for _, passages in pairs]


def _chunks(text: str) -> HeldChunks:
    return HeldChunks([Chunk(0, 0, len(text), text, 1)])


async def _similar(statement: str, asked: _Asked, text: str = DOCUMENT) -> str | None:
    [finding] = await with_similar([Finding(statement, "memory", ())], _chunks(text), asked)
    assert not finding.supported
    return finding.similar.span.text if finding.similar is not None else None


async def test_a_paraphrase_has_the_similar_sentence_at_its_place() -> None:
    [finding] = await with_similar([Finding(PARAPHRASE, "memory", ())], _chunks(DOCUMENT), _Asked())
    assert not finding.supported
    assert finding.similar is not None
    span = finding.similar.span
    assert DOCUMENT[span.start : span.end] == span.text == "Marta keeps the spare key of locker 482 in a tin."


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("The extra key of locker 428 is kept by Marta.", id="number"),
        pytest.param("The extra key of locker 482 is kept by Berta.", id="name"),
        pytest.param("Berta keeps the extra key of locker 482.", id="first-name"),
        pytest.param("The extra key of locker 482 is not kept by Marta.", id="negation"),
    ],
)
async def test_another_number_name_or_sense_is_not_compared(statement: str) -> None:
    asked = _Asked()
    assert await _similar(statement, asked) is None
    assert asked.pairs == []


async def test_a_first_word_that_the_document_writes_small_is_no_name() -> None:
    assert await _similar("Every key of locker 482 is kept by Marta.", _Asked()) is not None


async def test_a_sentence_below_the_threshold_is_not_similar() -> None:
    assert await _similar(PARAPHRASE, _Asked(AT_LEAST - 0.01)) is None


async def test_supported_statements_are_not_compared() -> None:
    chunks, asked = _chunks(DOCUMENT), _Asked()
    already = Finding("Ships are late.", "memory", (TextSpan(0, 20, DOCUMENT[:20]),))
    assert await with_similar([already], chunks, asked) == [already]
    assert asked.pairs == []


async def test_what_is_compared_is_bounded() -> None:
    text = " ".join(f"The spare key lies in tin {number}." for number in range(100))
    asked = _Asked()
    found = await with_similar([Finding("a spare key in a tin", "memory", ())] * 100, _chunks(text), asked)
    assert len(asked.pairs) == MOST_STATEMENTS == sum(finding.similar is not None for finding in found)
    assert {len(passages) for _, passages in asked.pairs} == {MOST_PASSAGES}


async def test_a_failed_comparison_is_the_callers_to_handle() -> None:
    async def away(pairs: object) -> Sequence[Sequence[float]]:
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        await with_similar([Finding(PARAPHRASE, "memory", ())], _chunks(DOCUMENT), away)
