"""Evidence by matching: what is said is found at its place, what is not said is never called supported."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.evidence import Finding, evidence_for
from memloop.evidence.findings import sentences_of, statements_of
from memloop.evidence.matching import Claim, supports
from memloop.evidence.words import words_of
from memloop.ports import Chunk, HeldChunks

NAMES = st.sampled_from(["Marta", "Anna", "Bruno", "Oslo", "New York"])
THINGS = st.sampled_from(["locker code", "badge number", "vault code"])
FILLER = st.sampled_from(
    [
        "It was a quiet morning; nobody spoke. ",
        "The whale, 30 feet long, dived. ",
        "He asked Mr. Bates twice!\n\n",
        "… ",
    ]
)


def cut(text: str, sizes: list[int]) -> HeldChunks:
    """The text in chunks of these sizes, and the rest as one."""
    chunks: list[Chunk] = []
    start = 0
    for size in [*sizes, len(text)]:
        end = min(len(text), start + size)
        if end > start:
            chunks.append(Chunk(len(chunks), start, end, text[start:end], 1))
        start = end
    return HeldChunks(chunks)


async def found(text: str, *, memory: str = "", answer: str = "", question: str = "Where?") -> list[Finding]:
    return await evidence_for(question, memory=memory, answer=answer, chunks=cut(text, []))


def says(sentence: str, statement: str) -> bool:
    return supports(words_of(sentence), Claim.of(statement))


@pytest.mark.parametrize(
    ("sentence", "statement"),
    [
        ("The locker code for Marta was 482.", "The locker code of Marta is 482."),
        ("In May, the mayor, Ann Lee, opened the new bridge.", "Ann Lee opened the new bridge."),
        ("Marta's code is 482 and Anna's code is 117.", "Anna's code is 117."),
        ("It cost 1,234 crowns.", "It cost 1234 crowns."),
        ("The dog was not fed on Monday.", "The dog was not fed on Monday."),
        ("Ann moved to Lima in 1999.", "Ann moves to Lima in 1999"),
        ("他住在利马。", "住在利马"),
    ],
)
def test_a_sentence_supports_its_own_statement(sentence: str, statement: str) -> None:
    assert says(sentence, statement)


@pytest.mark.parametrize(
    ("sentence", "statement"),
    [
        ("The locker code of Marta is 482.", "The locker code of Marta is 483."),
        ("The vault code of Marta is 482.", "The locker code of Marta is 482."),
        ("The locker code of Anna is 482.", "The locker code of Marta is 482."),
        ("Marta's code is 482 and Anna's code is 117.", "Marta's code is 117."),
        ("Marta's code is 482 and Anna's code is 117.", "Anna's code is 482."),
        ("The locker code of Marta is not 482.", "The locker code of Marta is 482."),
        ("The locker code of Marta isn't 482.", "The locker code of Marta is 482."),
        ("Ann called Bob.", "Bob called Ann."),
        ("Bob was called by Ann.", "Bob called Ann."),
        ("The man bit the dog.", "The dog bit the man."),
        ("It weighs 12.5 kilos.", "It weighs 125 kilos."),
        ("他住在利马。", "他住在罗马"),
        ("Anything at all.", "..."),
        ("Anything at all.", ""),
    ],
)
def test_a_sentence_does_not_support_other_statements(sentence: str, statement: str) -> None:
    assert not says(sentence, statement)


@given(st.lists(FILLER, max_size=8), st.lists(FILLER, max_size=8), NAMES, THINGS, st.integers(0, 999), st.data())
def test_a_planted_fact_is_found_at_its_place_however_the_document_is_cut(
    before: list[str], after: list[str], name: str, thing: str, value: int, data: st.DataObject
) -> None:
    fact = f"The {thing} of {name} is {value:03d}."
    head = "".join(before)
    text = f"{head}{fact} {''.join(after)}"
    chunks = cut(text, data.draw(st.lists(st.integers(1, 60), max_size=20)))
    (finding,) = _run(chunks, memory=fact)
    assert [(span.start, span.end) for span in finding.spans] == [(len(head), len(head) + len(fact))]
    span = finding.spans[0]
    assert span.text == text[span.start : span.end] == fact
    assert chunks[span.chunk].start <= span.start < chunks[span.chunk].end


FACTS = st.tuples(NAMES, THINGS, st.integers(0, 99))


@given(st.lists(FACTS, min_size=1, max_size=12), FACTS)
def test_a_fact_is_supported_if_and_only_if_it_was_planted(
    planted: list[tuple[str, str, int]], claimed: tuple[str, str, int]
) -> None:
    told = ["The {1} of {0} is {2:03d}.".format(*fact) for fact in (*planted, claimed)]
    (finding,) = _run(cut(" ".join(told[:-1]), [50] * 5), memory=told[-1])
    assert finding.supported == (claimed in planted)


@given(st.text(max_size=300), st.text(max_size=80), st.text(max_size=40), st.lists(st.integers(1, 40), max_size=6))
def test_every_span_is_the_documents_own_text(document: str, memory: str, answer: str, sizes: list[int]) -> None:
    for finding in _run(cut(document, sizes), memory=memory + document[:40], answer=answer):
        for span in finding.spans:
            assert document[span.start : span.end] == span.text


def _run(chunks: HeldChunks, *, memory: str = "", answer: str = "", question: str = "What?") -> list[Finding]:
    return asyncio.run(evidence_for(question, memory=memory, answer=answer, chunks=chunks))


TWO_HOPS = "The museum code of Oslo is 113. Long ago. The home town of Marta is Oslo. The vault code of Anna is 113."


async def test_an_answer_is_led_to_by_a_chain_of_memories_from_the_question() -> None:
    memory = "The home town of Marta is Oslo. The museum code of Oslo is 113."
    question = "What is the museum code of the home town of Marta?"
    *_, answer = await found(TWO_HOPS, memory=memory, answer="113", question=question)
    assert [span.text for span in answer.spans] == [
        "The home town of Marta is Oslo.",
        "The museum code of Oslo is 113.",
    ]


async def test_a_chain_is_found_among_a_hundred_statements_that_share_a_name() -> None:
    facts = ["The home town of Marta is Oslo.", "The mayor of Oslo is Bruno.", "The badge number of Bruno is 113."]
    told = " ".join([*(f"The vault of Oslo holds coin {number}." for number in range(100)), *facts])
    question = "What is the badge number of the mayor of the home town of Marta?"
    *_, answer = await found(told, memory=told, answer="113", question=question)
    assert [span.text for span in answer.spans] == facts


@pytest.mark.parametrize(
    ("memory", "question"),
    [
        ("The vault code of Anna is 113.", "What is the vault code of Marta?"),
        ("The vault code of Anna is 113.", "What is the locker code of Anna?"),
        ("The museum code of Oslo is 113.", "What is the museum code of the home town of Marta?"),
        ("The home town of Marta is Oslo.", "What is the museum code of the home town of Marta?"),
        ("", "What is the museum code of Marta?"),
    ],
)
async def test_a_value_that_answers_another_question_is_no_support(memory: str, question: str) -> None:
    *_, answer = await found(TWO_HOPS, memory=memory, answer="113", question=question)
    assert not answer.supported


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("Far off. The locker code of Marta is 482.", "What is the locker code of Marta?", "482"),
        ("Marta lives in Oslo.", "Who lives in Oslo?", "Marta"),
        ("Marta lives in Oslo since 1999.", "Where does Marta live?", "In Oslo."),
    ],
)
async def test_a_bare_answer_is_found_with_its_question(text: str, question: str, answer: str) -> None:
    (finding,) = await found(text, answer=answer, question=question)
    assert finding.supported


async def test_a_bare_answer_that_only_occurs_somewhere_is_no_support() -> None:
    (finding,) = await found("Room 482 was empty.", answer="482", question="What is the locker code of Marta?")
    assert not finding.supported


async def test_two_sentences_without_a_blank_between_do_not_support_a_mixture_of_both() -> None:
    text = "The locker code of Anna is 117.The vault code of Marta is 482."
    false, true = await found(text, memory="The locker code of Marta is 482. The vault code of Marta is 482.")
    assert not false.supported
    assert [span.text for span in true.spans] == ["The vault code of Marta is 482."]


async def test_every_statement_has_a_finding_in_order_and_marks_of_ours_are_no_part_of_it() -> None:
    memory = "- <confirmed>Ann lives in Rome.</confirmed>\n2. Bob left Lima; Carla stayed."
    findings = await found("Ann lives in Rome.", memory=memory, answer="Rome, of course. Yes!", question="Where?")
    assert [(each.source, each.statement, each.supported) for each in findings] == [
        ("memory", "Ann lives in Rome.", True),
        ("memory", "Bob left Lima;", False),
        ("memory", "Carla stayed.", False),
        ("output_text", "Rome, of course.", False),
        ("output_text", "Yes!", False),
    ]


async def test_a_repeated_statement_has_the_first_places() -> None:
    (finding,) = await found("Ann lives in Rome. " * 5, memory="Ann lives in Rome.")
    assert [span.start for span in finding.spans] == [0, 19, 38]


@given(st.text(max_size=200))
def test_sentences_are_pieces_of_the_text_in_order(text: str) -> None:
    end = 0
    for sentence in sentences_of(text):
        assert sentence.start >= end
        assert text[sentence.start : sentence.end] == sentence.text
        end = sentence.end


def test_a_sentence_ends_where_the_blank_after_it_is_missing() -> None:
    text = 'He paid 331.The rest (he said "no".) Was 3.5.A man at v2.x of U.S.Steel came.'
    assert statements_of(text) == [
        "He paid 331.",
        'The rest (he said "no".)',
        "Was 3.5.",
        "A man at v2.x of U.S.Steel came.",
    ]


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    assert statements_of("Dr. Lee paid 3.5 crowns, e.g. twice. Then J. Doe left. No. It was I. So be it.") == [
        "Dr. Lee paid 3.5 crowns, e.g. twice.",
        "Then J. Doe left.",
        "No.",
        "It was I.",
        "So be it.",
    ]
