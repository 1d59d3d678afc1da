"""RULER's tasks of our own: what is asked for is there, as often as it should be, in as many tokens."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluation.ruler.items import items, source_of
from memloop.wire.chat import Json
from trainer.__main__ import main
from trainer.data.parquet import read_parquet
from trainer.data.ruler import TASKS, RulerItem, as_reading_rows, ruler_items
from trainer.objectives.answer_reward import answer_reward
from trainer.tiny.prose import Haystack


def words(text: str) -> int:
    return len(text.split())


def quarters(text: str) -> int:
    """A fast estimate."""
    return len(text) // 4


def reward_of(row: Json, named: Sequence[str]) -> float:
    """The reward of a reply that boxes these outputs in this order."""
    golds: Any = row["reward_model"]
    return answer_reward(f"\\boxed{{{', '.join(named)}}}", golds["ground_truth"], score="em")


@pytest.mark.parametrize("task", TASKS)
def test_every_output_stands_in_the_document_which_fills_its_tokens(task: str) -> None:
    (item,) = ruler_items(task, tokens=1500, count=1, seed=0, tokens_of=words)
    assert 1300 < words(item.context) <= 1500
    assert all(output in item.context for output in item.outputs)


@pytest.mark.parametrize(
    ("task", "outputs", "needles"),
    [("niah_single_2", 1, 1), ("niah_multikey_1", 1, 4), ("niah_multivalue", 4, 4), ("niah_multiquery", 4, 4)],
)
def test_the_task_sets_the_number_of_needles(task: str, outputs: int, needles: int) -> None:
    (item,) = ruler_items(task, tokens=800, count=1, seed=1, tokens_of=words)
    found = re.findall(r"The code of the (\w+ lamp) is ([\w-]+)\.", item.context)
    assert (len(item.outputs), len(found)) == (outputs, needles)
    keys = set(re.findall(r"the (\w+ lamp)", item.input))
    assert {value for key, value in found if key in keys} == set(item.outputs)


def test_a_document_of_needles_alone_asks_for_one_of_them() -> None:
    (item,) = ruler_items("niah_multikey_3", tokens=800, count=1, seed=0, tokens_of=words)
    found = re.findall(r"The code of the (\w+ lamp) is ([\w-]+)\.", item.context)
    assert len(found) > 80
    assert item.context == " ".join(f"The code of the {key} is {value}." for key, value in found)
    assert len(dict(found)) == len(found)


def test_a_chain_of_variables_leads_to_its_value_and_no_other_does() -> None:
    (item,) = ruler_items("vt", tokens=800, count=1, seed=0, tokens_of=words)
    links = dict(re.findall(r"(VAR_\w+) = (\w+)\.", item.context))
    asked = re.findall(r"\d+", item.input)[0]

    def value(name: str) -> str:
        return name if name.isdigit() else value(links[name])

    assert {name for name in links if value(name) == asked} == set(item.outputs)
    assert len(links) == 15


def test_the_three_words_asked_for_are_the_most_frequent() -> None:
    for item in ruler_items("fwe", tokens=400, count=10, seed=0, tokens_of=words):
        counts = Counter(item.context.split()).most_common(4)
        assert {word for word, _ in counts[:3]} == set(item.outputs)
        assert counts[2][1] > counts[3][1]


def test_items_differ_and_a_seed_repeats_them() -> None:
    made = [list(ruler_items("vt", tokens=300, count=5, seed=seed, tokens_of=words)) for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]
    assert len({item.context for item in made[0]}) == 5


@pytest.mark.parametrize("task", ["niah_multivalue", "niah_multiquery", "vt"])
def test_an_answer_in_the_order_of_the_document_is_right(task: str) -> None:
    made = list(ruler_items(task, tokens=800, count=20, seed=0, tokens_of=words))
    for item, row in zip(made, as_reading_rows(made), strict=True):
        read = list(dict.fromkeys(re.findall(rf"\b(?:{'|'.join(item.outputs)})\b", item.context)))
        assert reward_of(row, read) == 1.0
        assert str(row["extra_info"]["question"]).endswith("with commas, in the order of the text.")  # type: ignore[index]


def test_the_most_frequent_word_comes_first_in_the_right_answer() -> None:
    made = list(ruler_items("fwe", tokens=60, count=40, seed=0, tokens_of=words))
    for item, row in zip(made, as_reading_rows(made), strict=True):
        counts = Counter(item.context.split()).most_common(4)
        assert len({count for _, count in counts}) == 4  # else the order of two words could not be known
        assert reward_of(row, [word for word, _ in counts[:3]]) == 1.0
        assert str(row["extra_info"]["question"]).endswith("with commas, the most frequent first.")  # type: ignore[index]


def test_a_million_tokens_have_needles_and_passages_enough() -> None:
    for task in ("niah_multikey_2", "qa_1", "qa_2"):
        (item,) = ruler_items(task, tokens=1_000_000, count=1, seed=0, tokens_of=quarters)
        assert 900_000 <= quarters(item.context) <= 1_000_000
        if task == "niah_multikey_2":
            keys = re.findall(r"The code of the (\w+) lamp", item.context)
            assert len(set(keys)) == len(keys) > 19_000


def test_an_item_that_comes_to_less_than_four_fifths_of_its_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match=r"qa_1: the longest item that fits 120 tokens has only \d\d$"):
        list(ruler_items("qa_1", tokens=120, count=1, seed=0, tokens_of=words))


def test_rows_to_train_on_are_of_other_items_than_those_to_evaluate_on(tmp_path: Path) -> None:
    asked = ["data", "ruler", "--task", "vt", "--task", "qa_1", "--tokens", "512", "--items", "3", "--train", "4"]
    main([*asked, "--out", str(tmp_path)])
    for task in ("vt", "qa_1"):
        evaluated, trained = (
            {str(row["context"]) for row in read_parquet(tmp_path / "512" / task / f"{split}.parquet")}
            for split in ("validation", "train")
        )
        assert (len(evaluated), len(trained)) == (3, 4)
        assert not evaluated & trained


def test_too_few_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit 5 tokens"):
        list(ruler_items("niah_single_1", tokens=5, count=1, seed=0, tokens_of=words))


def test_the_files_are_those_that_the_evaluation_reads(tmp_path: Path) -> None:
    main(["data", "ruler", "--task", "vt", "--tokens", "512", "--items", "3", "--out", str(tmp_path)])
    folder = tmp_path / "512/vt"
    read = list(items([source_of(str(folder / "validation.jsonl"))]))
    assert [(item.task, item.size, item.index, len(item.golds)) for item in read] == [
        ("vt", 512, index, 5) for index in range(3)
    ]
    rows = list(read_parquet(folder / "validation.parquet"))
    assert [row["reward_model"]["ground_truth"] for row in rows] == [[", ".join(item.golds)] for item in read]  # type: ignore[index]


@pytest.mark.parametrize("task", ["niah_single_2", "niah_multikey_1", "niah_multivalue", "vt"])
def test_the_same_needles_stand_in_the_haystack_that_is_asked_for(task: str) -> None:
    marks: dict[Haystack, str] = {"novel": "whale", "addresses": "Congress", "repeated": "The tide comes in"}
    made = {
        name: list(ruler_items(task, tokens=3000, count=1, seed=0, tokens_of=words, haystack=name)) for name in marks
    }
    assert len({(item.input, item.outputs) for (item,) in made.values()}) == 1
    for name, (item,) in made.items():
        assert [marks[each] in item.context for each in marks] == [each == name for each in marks]
        assert all(output in item.context for output in item.outputs)


def passages(item: RulerItem) -> list[str]:
    return re.split(r"Document \d+:\n", item.context)[1:]


def test_a_question_on_a_made_up_passage_has_its_answer_in_one_passage() -> None:
    for item in ruler_items("qa_1", tokens=2000, count=5, seed=0, tokens_of=words):
        asked = re.search(r"What is the (.*) of (\w+)\?", item.input)
        assert asked
        told = [each for each in passages(item) if f"The {asked[1]} of {asked[2]} is {item.outputs[0]}." in each]
        assert len(told) == 1
        others = re.findall(rf"The {asked[1]} of \w+ is (\d+)\.", item.context)
        assert len(others) == len(set(others)) == len(passages(item)) > 10


def test_a_question_of_two_hops_needs_two_passages() -> None:
    for item in ruler_items("qa_2", tokens=2000, count=5, seed=0, tokens_of=words):
        asked = re.search(r"What is the (.*) of the place where (\w+) lives\?", item.input)
        assert asked
        (place,) = re.findall(rf"{asked[2]} lives in (\w+)\.", item.context)
        assert re.findall(rf"The {asked[1]} of {place} is (\d+)\.", item.context) == list(item.outputs)
        homes = [each for each in passages(item) if " lives in " in each]
        assert not any(item.outputs[0] in each for each in homes)
        assert len(homes) > 3
