"""Long documents around questions: every item whole, its evidence anywhere, nothing held that need not be."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from memloop.wire.chat import Json
from trainer.__main__ import main
from trainer.data.encyclopedia import encyclopedia, write_encyclopedia
from trainer.data.hotpot import HotpotQuestion, Paragraph
from trainer.data.json_rows import DataError
from trainer.data.parquet import read_parquet, write_parquet
from trainer.data.pool import DiskPool
from trainer.data.rows import reading_row
from trainer.data.schemas import READING
from trainer.data.synthesis import Size, compose


def asked(count: int) -> list[HotpotQuestion]:
    return [HotpotQuestion.model_validate(row) for row in encyclopedia(count, seed=0, paragraph_chars=40)]


def pool_of(questions: list[HotpotQuestion]) -> list[Paragraph]:
    return [paragraph for question in questions for paragraph in question.paragraphs.values()]


def test_evidence_is_as_likely_at_any_tenth_of_the_document() -> None:
    questions = asked(400)
    pool = pool_of(questions)
    places = Counter[int]()
    for number, question in enumerate(questions):
        item = compose(question, pool, Size(documents=50), random.Random(number))
        assert len(item.evidence) == 2
        places.update((place - 1) // 5 for place in item.evidence)
    # 800 pieces of evidence, 80 expected in each tenth; chi-square with 9 degrees of freedom, p = 0.001 at 27.9
    assert sum((places[tenth] - 80) ** 2 / 80 for tenth in range(10)) < 27.9


def test_an_item_fills_its_tokens_and_no_more() -> None:
    questions = asked(30)
    size = Size(tokens=4000, count=len)
    item = compose(questions[0], pool_of(questions), size, random.Random(0))
    assert 3700 < len(item.context) <= 4000
    assert {item.documents[number - 1].title for number in item.evidence} == questions[0].evidence


def test_evidence_that_does_not_fit_the_tokens_is_refused() -> None:
    with pytest.raises(DataError, match="does not fit 20 tokens"):
        compose(asked(1)[0], [], Size(tokens=20, count=len), random.Random(0))


@pytest.mark.parametrize("given", [Size, lambda: Size(documents=3, tokens=3)])
def test_a_size_is_of_one_kind(given: type[Size]) -> None:
    with pytest.raises(ValueError, match="documents or a number of tokens"):
        given()


def test_a_pool_on_the_disk_keeps_the_first_paragraph_of_each_title() -> None:
    told = [Paragraph("Ä", "one"), Paragraph("B", "two"), Paragraph("Ä", "three")]
    with DiskPool(told) as pool:
        assert [pool[number] for number in range(len(pool))] == told[:2]


def test_made_up_names_are_never_used_twice() -> None:
    titles = [title for question in asked(2000) for title in question.paragraphs]
    assert len(set(titles)) == len(titles) == 20_000


def test_more_questions_than_names_are_refused() -> None:
    with pytest.raises(ValueError, match="names for 39321"):
        list(encyclopedia(50_000, seed=0))


def test_the_command_writes_rows_in_verls_columns_and_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "q.jsonl", tmp_path / "set"
    write_encyclopedia(source, 12, seed=0)
    sizes = ["--documents", "30", "--items", "9", "--dev", "3"]
    main(["data", "synthesise", "--questions", str(source), *sizes, "--agent", "memreread", "--out", str(out)])
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == {"train": 9, "dev": 3}
    assert said["peak_rss_mib"] > 0
    train, dev = list(read_parquet(out / "train.parquet")), list(read_parquet(out / "dev.parquet"))
    assert len({row["prompt"][0]["content"] for row in train + dev}) == 12  # type: ignore[index]
    first = json.loads(source.read_text("utf-8").splitlines()[0])
    assert train[0]["reward_model"] == {"style": "rule", "ground_truth": [first["answer"]]}
    assert train[0]["agent_name"] == "memreread"
    assert train[0]["extra_info"]["num_docs"] == 30  # type: ignore[index]
    assert str(train[0]["context"]).count("\n\nDocument ") == 29
    card = (out / "README.md").read_text("utf-8")
    front = yaml.safe_load(card.split("---")[1])
    assert front["size_categories"] == ["n<1K"]
    assert [file["path"] for file in front["configs"][0]["data_files"]] == ["train.parquet", "dev.parquet"]
    assert str(tmp_path) not in card


def test_the_same_seed_makes_the_same_file(tmp_path: Path) -> None:
    source = tmp_path / "q.jsonl"
    write_encyclopedia(source, 5, seed=0)
    for name in ("a", "b"):
        arguments = ["--questions", str(source), "--documents", "20", "--items", "5", "--dev", "0"]
        main(["data", "synthesise", *arguments, "--out", str(tmp_path / name)])
    assert (tmp_path / "a/train.parquet").read_bytes() == (tmp_path / "b/train.parquet").read_bytes()


@pytest.mark.parametrize(
    ("documents", "complaint"),
    [
        pytest.param("31", "has 30 different paragraphs", id="paragraphs"),
        pytest.param("30", "too few questions: of 8192 as train it has 3", id="questions"),
    ],
)
def test_too_small_a_file_is_refused_and_leaves_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], documents: str, complaint: str
) -> None:
    source = tmp_path / "q.jsonl"
    write_encyclopedia(source, 3, seed=0)
    with pytest.raises(SystemExit) as ended:
        main(
            ["data", "synthesise", "--questions", str(source), "--documents", documents, "--out", str(tmp_path / "set")]
        )
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
    assert list((tmp_path / "set").iterdir()) == []


def test_rows_go_to_the_disk_in_groups_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    assert write_parquet(_rows(10), path, READING, group_chars=3000) == 10
    assert [len(str(row["context"])) for row in read_parquet(path)] == [1000] * 10
    import pyarrow.parquet as pq  # pyright: ignore

    assert pq.ParquetFile(path).num_row_groups == 4  # pyright: ignore


def test_a_row_that_cannot_be_made_leaves_the_file_before_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_parquet(_rows(2), path, READING)

    def broken() -> Iterator[Json]:
        yield from _rows(3)
        raise DataError("the source ends here")

    with pytest.raises(DataError):
        write_parquet(broken(), path, READING)
    assert len(list(read_parquet(path))) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]


def _rows(count: int) -> Iterator[Json]:
    for index in range(count):
        yield reading_row(
            data_source="test",
            index=index,
            id_=str(index),
            question="?",
            answers=["!"],
            context="x" * 1000,
            agent="memagent",
        )
