"""Text from documents, users and models costs time in proportion to its length, whatever it holds."""

import asyncio
from collections.abc import Callable

import pytest

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.evidence import Finding, evidence_for
from memloop.evidence.findings import sentences_of, statements_of
from memloop.evidence.matching import Claim, supports
from memloop.evidence.words import folded, words_of
from memloop.loops.memreader import find_call
from memloop.loops.parsing.memory_list import find_memory_list
from memloop.loops.parsing.reading import parse_answer, parse_gate, parse_memory, parse_query
from memloop.loops.rendering import conversation_lines
from memloop.ports import Chunk, Completion, HeldChunks
from memloop.profiles import neutralise
from memloop.scoring.strict import strict_score
from memloop.wire.memory import Source
from tests.memloop.growth import is_linear, seconds
from tests.memloop.tokenizers_of_tests import PROSE, byte_level_bpe

CHUNK_CHARS = 20_000
REPLY_CHARS = 40_000
FACT = "The locker code of Marta is 482."


def stretched(unit: str) -> Callable[[int], str]:
    return lambda chars: unit * (chars // len(unit))


TEXTS = {
    "marks": "!",
    "marks-and-closers": "!)",
    "closers": ")",
    "abbreviations": "A. ",
    "prose": PROSE,
    "blanks": " ",
    "lines": "\n \n",
    "points": "1.2.",
    "tags": "<",
    "backticks": "`",
    "accents": "a\u0300\u0316",
}


@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "head", ["", FACT + " ", "<", "x."], ids=["alone", "after-a-fact", "after-a-tag", "after-a-dot"]
)
def test_a_chunk_is_cut_into_sentences_and_words_in_linear_time(head: str, unit: str) -> None:
    def work(text: str) -> None:
        list(sentences_of(text))
        statements_of(text)
        words_of(text)
        folded(text)
        neutralise(text)

    assert is_linear(lambda chars: head + stretched(unit)(chars) + "x", work, size=CHUNK_CHARS)


def held(*texts: str) -> HeldChunks:
    chunks: list[Chunk] = []
    for text in texts:
        start = chunks[-1].end if chunks else 0
        chunks.append(Chunk(len(chunks), start, start + len(text), text, 1))
    return HeldChunks(chunks)


def evidence(given: tuple[str, str, HeldChunks]) -> list[Finding]:
    memory, answer, chunks = given
    question = "What is the code of Marta?"
    return asyncio.run(evidence_for(question, memory=memory, answer=answer, chunks=chunks))


def sharing(count: int) -> list[str]:
    """Statements that all hold the same names, so that each leads on to each."""
    return [f"Marta of Oslo has the code {number} of Anna." for number in range(count)]


def test_the_chains_of_statements_that_share_a_name_grow_no_faster_than_their_number() -> None:
    def make(count: int) -> tuple[str, str, HeldChunks]:
        told = " ".join(sharing(count))
        return told, "Bruno 999.", held(told)

    assert is_linear(make, evidence, size=120)


def test_sixty_statements_that_share_a_name_are_searched_within_a_second() -> None:
    told = " ".join(sharing(60))
    assert seconds((told, "482 59.", held(told)), evidence) < 1.0
    findings = evidence((told, "The answer is 482.", held(told)))
    assert [finding.supported for finding in findings] == [True] * 60 + [False]


def test_many_answers_share_one_search() -> None:
    told = " ".join(sharing(40))

    def make(count: int) -> tuple[str, str, HeldChunks]:
        return told, " ".join(f"Anna {number}." for number in range(1000, 1000 + count)), held(told)

    assert is_linear(make, evidence, size=200)


@pytest.mark.parametrize("unit", ["!", "A. ", "Marta ", "no "], ids=["marks", "abbreviations", "names", "negations"])
def test_evidence_of_a_long_chunk_takes_linear_time(unit: str) -> None:
    def make(chars: int) -> tuple[str, str, HeldChunks]:
        return FACT, "482", held(f"{FACT} {stretched(unit)(chars)}", "x. ")

    assert is_linear(make, evidence, size=CHUNK_CHARS)


@pytest.mark.parametrize("unit", ["word ", "Marta ", "7 "], ids=["words", "names", "numbers"])
def test_a_long_claim_is_matched_in_linear_time(unit: str) -> None:
    def make(chars: int) -> str:
        return stretched(unit)(chars)

    sentence = words_of(stretched(unit)(1_900))
    assert is_linear(make, lambda text: supports(sentence, Claim.of(text)), size=CHUNK_CHARS)


REPLIES = {
    "fence": ("```", " "),
    "query": ("", "<query>"),
    "gate": ("<keep", " "),
    "think": ("", "<think>"),
    "closed": ("", "</think>"),
    "braces": ("", "{"),
    "entries": ('{"memory list":[', '{"key":"a"},'),
    "call": ("<tool_call>", "<tool_call>"),
    "marks": ("", ".)"),
    "tags": (".", "</a>"),
    "boxes": ("", r"\boxed{"),
    "text": (r"\boxed{", r"\text{a}"),
}


@pytest.mark.parametrize(("head", "unit"), REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_a_reply_is_parsed_in_linear_time(head: str, unit: str, finish_reason: str) -> None:
    def work(text: str) -> None:
        completion = Completion(content=text, finish_reason=finish_reason)
        for parse in (find_call, find_memory_list, parse_answer, parse_gate, parse_memory, parse_query):
            parse(completion)
        strict_score(text, ["a"])

    assert is_linear(lambda chars: head + stretched(unit)(chars) + "x", work, size=REPLY_CHARS)


@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
def test_a_document_is_cut_into_chunks_in_linear_time(unit: str) -> None:
    splitter = EstimatingSplitter()
    assert is_linear(stretched(unit), lambda text: splitter.split(text, chunk_tokens=200), size=20_000)


@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
def test_a_document_is_cut_by_a_tokenizer_in_linear_time(unit: str) -> None:
    splitter = TokenizerSplitter(byte_level_bpe())
    assert is_linear(stretched(unit), lambda text: splitter.split(text, chunk_tokens=200), size=20_000)


@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
def test_turns_are_rendered_in_linear_time(unit: str) -> None:
    def work(text: str) -> str:
        return conversation_lines([Source(role="user", content=text)])

    assert is_linear(lambda chars: ("<" + stretched(unit)(chars))[:chars], work, size=32_000)
