"""The demo document: long enough, held out, its facts where its questions say."""

import json
from functools import cache

from memloop.chunking import TokenizerSplitter
from tests.trainer.tiny_world import CHECKPOINT, ROOT, profile
from trainer.tiny.demo import DISTRACTORS, ONE_HOP, TWO_HOP, DemoDocument, all_whole, demo_document
from trainer.tiny.prose import book

EXAMPLE = ROOT / "examples/long-read"


@cache
def splitter() -> TokenizerSplitter:
    return TokenizerSplitter((CHECKPOINT / "tokenizer.json").read_bytes())


@cache
def document() -> DemoDocument:
    return demo_document(splitter(), chunk_tokens=profile().budget.chunk_tokens)


def test_the_shipped_files_are_what_the_command_writes() -> None:
    made, shipped = document(), json.loads((EXAMPLE / "questions.json").read_text("utf-8"))
    assert (EXAMPLE / "document.txt").read_text("utf-8") == made.text
    assert [asked["question"] for asked in shipped["questions"]] == [asked.question for asked in made.questions]
    assert shipped["tokens"] == splitter().count(made.text)


def test_it_has_at_least_64_000_tokens() -> None:
    assert splitter().count(document().text) >= 64_000


def test_every_fact_stands_at_its_offsets_and_whole_in_one_chunk() -> None:
    made = document()
    planted = [*made.distractors, *(fact for asked in made.questions for fact in asked.facts)]
    assert len(planted) == ONE_HOP + 2 * TWO_HOP + DISTRACTORS + 4
    assert all(made.text[fact.start : fact.end] == fact.sentence for fact in planted)
    assert all_whole(made, splitter(), profile().budget.chunk_tokens)


def test_answers_stand_in_their_facts_and_places_come_before_homes() -> None:
    for asked in document().questions:
        assert asked.answer in asked.facts[-1].sentence
        if asked.hops == 2:
            home, code = asked.facts
            assert code.end < home.start


def test_without_its_facts_it_is_prose_that_training_never_saw() -> None:
    made = document()
    planted = [*made.distractors, *(fact for asked in made.questions for fact in asked.facts)]
    prose = made.text
    for fact in sorted(planted, key=lambda each: -each.start):
        prose = prose[: fact.start] + prose[fact.end + 1 :]
    assert prose in book("held_out").text
