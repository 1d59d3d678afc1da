"""RULER's tasks of our own: what is asked for is there, as often as it should be, in as many tokens."""

import re
from collections import Counter
from pathlib import Path

import pytest

from evaluation.ruler.items import items, source_of
from trainer.__main__ import main
from trainer.data.parquet import read_parquet
from trainer.data.ruler import TASKS, ruler_items


def words(text: str) -> int:
    return len(text.split())


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
