"""RULER-HQA items from a HotpotQA file: the evidence is there once, and at places of its own."""

import json
import re
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.ruler.command import main
from evaluation.ruler.items import items, source_of
from evaluation.ruler.synthesis import synthesise
from tests.evaluation.ruler_rig import DATA
from trainer.data.hotpot import HotpotQuestion, questions
from trainer.data.json_rows import DataError

HOTPOT = DATA / "hotpot.json"
OWN = 4


def question(number: int) -> HotpotQuestion:
    """A question with four paragraphs of its own, two of them evidence."""
    titles = [f"Q{number}P{paragraph}" for paragraph in range(OWN)]
    return HotpotQuestion(
        question=f"question {number}",
        answer="yes",
        context=tuple((title, (f"Text of {title}.",)) for title in titles),
        supporting_facts=((titles[0], 0), (titles[2], 0), (titles[2], 1)),
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.data())
def test_every_item_has_its_size_and_each_document_once(questions: int, data: st.DataObject) -> None:
    documents = data.draw(st.integers(2, OWN * questions))
    asked = [question(number) for number in range(questions)]
    made = list(synthesise(asked, documents=documents, seed=data.draw(st.integers()), count=questions))
    assert len(made) == questions
    for number, row in enumerate(made):
        headings = re.findall(r"^Document (\d+):\n(\w+)\nText of \2\.$", str(row["context"]), re.MULTILINE)
        assert [int(position) for position, _ in headings] == list(range(1, documents + 1))
        titles = [title for _, title in headings]
        assert len(set(titles)) == documents == row["num_docs"]
        places = sorted(titles.index(f"Q{number}P{paragraph}") + 1 for paragraph in (0, 2))
        assert row["evidence"] == places
        if documents >= OWN:
            assert {f"Q{number}P{paragraph}" for paragraph in range(OWN)} <= set(titles)


@settings(max_examples=50, deadline=None)
@given(st.integers())
def test_evidence_stands_elsewhere_in_each_item(seed: int) -> None:
    asked = [question(number) for number in range(20)]
    made = synthesise(asked, documents=40, seed=seed, count=20)
    assert len({json.dumps(row["evidence"]) for row in made}) > 10


def test_a_seed_gives_the_same_items_and_another_seed_others() -> None:
    asked = [question(number) for number in range(5)]
    first, again, other = (list(synthesise(asked, documents=10, seed=seed, count=5)) for seed in (1, 1, 2))
    assert first == again != other


def test_both_published_shapes_are_read(tmp_path: Path) -> None:
    columns = cast(dict[str, object], orjson.loads(HOTPOT.read_bytes())[0])
    context, facts = (cast(list[list[object]], columns[name]) for name in ("context", "supporting_facts"))
    columns["context"] = {"title": [row[0] for row in context], "sentences": [row[1] for row in context]}
    columns["supporting_facts"] = {"title": [row[0] for row in facts], "sent_id": [row[1] for row in facts]}
    path = tmp_path / "columns.jsonl"
    path.write_bytes(orjson.dumps(columns))
    assert list(questions(path)) == list(questions(HOTPOT))[:1]


def test_the_command_writes_what_the_evaluation_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["synthesise", "--hotpot", str(HOTPOT), "--documents", "4", "--documents", "9", "--out", str(tmp_path)])
    made = cast(dict[str, int], orjson.loads(capsys.readouterr().out)["items"])
    assert list(made.values()) == [3, 3]
    read = list(items([source_of(path) for path in made]))
    assert [(item.task, item.size) for item in read] == [("hqa", 4)] * 3 + [("hqa", 9)] * 3


def test_items_of_the_tiny_models_world_hold_their_answer_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["tiny", "--tokens", "240", "--tokens", "960", "--items", "3", "--out", str(tmp_path)])
    made = cast(dict[str, int], orjson.loads(capsys.readouterr().out)["items"])
    read = list(items([source_of(path) for path in made]))
    assert [(item.task, item.size) for item in read] == [("niah_single_1", 240)] * 3 + [("niah_single_1", 960)] * 3
    for item in read:
        asked_for = item.question.removeprefix("What is ").removesuffix("?")
        assert item.context.lower().count(f"{asked_for} is {item.golds[0]}".lower()) == 1


@pytest.mark.parametrize(
    ("documents", "message"),
    [("1000", "1000 documents are asked for, and the file has"), ("1", "evidence in more than 1 documents")],
)
def test_sizes_that_cannot_be_made_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], documents: str, message: str
) -> None:
    with pytest.raises(SystemExit):
        main(["synthesise", "--hotpot", str(HOTPOT), "--documents", documents, "--out", str(tmp_path)])
    assert message in capsys.readouterr().err


def test_evidence_without_its_paragraph_is_refused_with_its_line(tmp_path: Path) -> None:
    row = question(0).model_dump() | {"supporting_facts": [["Elsewhere", 0]]}
    path = tmp_path / "hotpot.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(DataError, match="line 1: the context has no paragraph 'Elsewhere'"):
        list(questions(path))
