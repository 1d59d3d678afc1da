"""Users' files: what is taken, and what is refused with its line."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.ruler.command import main
from evaluation.ruler.items import Item, documents_by_number, items, source_of
from tests.evaluation.ruler_rig import DATA
from trainer.data.json_rows import DataError, rows

HQA_ROW = {"context": "Document 1:\nA\nB", "input": "Who?", "answers": ["A", "a"], "num_docs": 50, "index": 3}
OOD_ROW = {"context": "text", "input": "Which?", "outputs": ["1", "2"], "index": 0, "length": 8000}

WIKI_ROW = {
    "context": "Document 1:\nA\nB",
    "input": "Who?",
    "answers": ["A"],
    "target_length": 8192,
    "index": 70,
    "actual_length": 8290,
    "evidence_idx": [72, 61],
    "level": "hard",
    "type": "comparison",
    "id": "dev_70",
}
GLOBAL_ROW = {
    "golden": ["8"],
    "question": "How many cats?",
    "context": "text",
    "id": "statistics_8k_3",
    "context_length": "8k",
    "clue_sections": [[1, 2]],
    "type": {"yaml_entry_name": "vt"},
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=4)


def written(path: Path, *lines: object) -> Path:
    """The rows as JSONL; a text is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


@settings(max_examples=50, deadline=None)
@given(st.lists(OBJECTS, min_size=1), st.sampled_from([None, 1]), st.integers(1, 40))
def test_an_array_is_read_as_json_reads_it(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], indent: int | None, block_chars: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "array.json"
    text = " \n" + json.dumps(values, indent=indent) + "\n"
    path.write_text(text)
    found = list(rows(path, block_chars=block_chars))
    assert [value for _, value in found] == values
    lines = text.splitlines()
    assert all(lines[line - 1].lstrip(" ,[").startswith("{") for line, _ in found)


def test_jsonl_rows_name_their_lines_and_blank_ones_are_skipped(tmp_path: Path) -> None:
    assert list(rows(written(tmp_path / "a.jsonl", {"a": 1}, "", {"b": 2}))) == [(1, {"a": 1}), (3, {"b": 2})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not JSON"),
        ('[\n{"a": 1},\n{"a" 1}]', "line 3: not JSON"),
        ('[\n{"a": 1}\n{"a": 1}]', "line 3: a comma or the array's end is missing"),
        ('[\n{"a": 1},\n', "line 3: not JSON"),
        ('[{"a": 1}', "line 1: a comma or the array's end is missing"),
        ("[", "line 1: not JSON"),
    ],
    ids=["jsonl", "value", "comma", "cut after comma", "cut after value", "nothing"],
)
def test_broken_json_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        list(rows(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.json: No such file"):
        list(rows(tmp_path / "gone.json"))


def test_both_formats_become_items(tmp_path: Path) -> None:
    hqa = source_of(str(written(tmp_path / "any.jsonl", HQA_ROW)))
    ood = source_of(f"vt:8192={written(tmp_path / 'other.jsonl', OOD_ROW)}")
    assert list(items([hqa, ood])) == [
        Item("hqa", 50, 3, "Who?", "Document 1:\nA\nB", ("A", "a")),
        Item("vt", 8192, 0, "Which?", "text", ("1", "2")),
    ]


def test_two_hop_rows_by_length_ask_for_a_brief_answer_and_keep_their_level_and_type(tmp_path: Path) -> None:
    source = source_of(str(written(tmp_path / "wiki.json", WIKI_ROW, {**WIKI_ROW, "level": None, "index": 71})))
    asked = "Who? Give the answer itself, in a few words."
    assert list(items([source])) == [
        Item("2wiki", 8192, 70, asked, "Document 1:\nA\nB", ("A",), "hard, comparison"),
        Item("2wiki", 8192, 71, asked, "Document 1:\nA\nB", ("A",), "comparison"),
    ]


def test_questions_about_the_whole_document_ask_for_digits(tmp_path: Path) -> None:
    (item,) = items([source_of(str(written(tmp_path / "global.json", GLOBAL_ROW)))])
    assert (item.task, item.size, item.index, item.golds) == ("global_reasoning", 8192, 3, ("8",))
    assert (item.question, item.kind) == ("How many cats? Write the number in digits.", "statistics_8k")


HOTPOT = DATA / "hotpot.json"
OVER_1M = {"context": [8, 0, 5], "input": "Which code?", "answers": ["9313"], "num_docs": 12800, "index": 0}


def test_numbers_of_documents_become_the_texts_that_memagents_code_joins(tmp_path: Path) -> None:
    source = source_of(str(written(tmp_path / "eval_12800.json", OVER_1M)))
    (item,) = items([source], documents=documents_by_number(HOTPOT))
    asked = json.loads(HOTPOT.read_text())
    sorted_texts = sorted({f"{title}\n{''.join(parts)}" for one in asked for title, parts in one["context"]})
    assert item.context == (
        f"Document 1:\n{sorted_texts[8]}\n\nDocument 2:\n{sorted_texts[0]}\n\nDocument 3:\n{sorted_texts[5]}"
    )
    assert (item.task, item.size, item.index) == ("hqa", 12800, 0)


def test_a_paragraph_keeps_the_white_space_that_decides_its_number(tmp_path: Path) -> None:
    context = [["A", [" second. ", "end "]], ["A", ["first"]], ["A", ["first"]]]
    asked = {"question": "q", "answer": "a", "supporting_facts": [["A", 0]], "context": context}
    assert documents_by_number(written(tmp_path / "hotpot.json", asked)) == ("A\n second. end ", "A\nfirst")


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        (OVER_1M, [], "line 1: the context holds numbers of documents; --hotpot FILE gives their texts"),
        (
            {**OVER_1M, "context": [0, 9999]},
            ["--hotpot", str(HOTPOT)],
            "line 1: context: no document 9999; --hotpot has 0 to ",
        ),
        ({**OVER_1M, "context": [-1]}, ["--hotpot", str(HOTPOT)], "line 1: context: no document -1"),
        ({**OVER_1M, "context": []}, ["--hotpot", str(HOTPOT)], "line 1: context: "),
    ],
    ids=["no texts", "no such document", "a negative number", "no number"],
)
def test_numbers_without_their_texts_are_refused(
    tmp_path: Path, row: object, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path / "eval_12800.json", row)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--data", str(data), *options, "--engine-url", "http://127.0.0.1:9/v1", "--model", "m"])
    assert message in capsys.readouterr().err


def test_questions_end_as_the_caller_wants(tmp_path: Path) -> None:
    source = source_of(str(written(tmp_path / "any.json", WIKI_ROW, GLOBAL_ROW, HQA_ROW)))
    found = items([source], suffixes={"2wiki": " Be brief.", "global_reasoning": "In digits."})
    assert [item.question for item in found] == ["Who? Be brief.", "How many cats?In digits.", "Who?"]


@pytest.mark.parametrize("model", ["RL-MemoryAgent-14B", "MemReread-4B"])
def test_a_published_checkpoint_is_not_read_with_our_prompts_by_accident(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path / "rows.jsonl", HQA_ROW)
    asked = ["run", "--data", str(data), "--engine-url", "http://127.0.0.1:9/v1", "--model", model]
    with pytest.raises(SystemExit, match="2"):
        main([*asked, "--out", str(tmp_path / "out")])
    assert "--profile FOLDER of `memloop-inference profile import mem" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit, match="2"):
        main([*asked, "--out", str(tmp_path / "out"), "--profile", "default"])
    assert "no engine answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "task", "size"),
    [
        ("8192/niah_single_1/validation.jsonl", "niah_single_1", 8192),
        ("data/eval_niah_multikey_3_131072.json", "niah_multikey_3", 131072),
        ("niah_single_2/eval_fwe_16384.json", "fwe", 16384),
        ("qa_1_8192.jsonl", "qa_1", 8192),
    ],
)
def test_task_and_size_are_read_from_the_path(path: str, task: str, size: int) -> None:
    source = source_of(path)
    assert (source.task, source.size) == (task, size)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(DataError, match="the task is one of niah_single_1"):
        source_of("niah_single_9:8192=x.jsonl")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**HQA_ROW, "answers": []}, "line 1: answers: Tuple should have at least 1 item"),
        ({**HQA_ROW, "num_docs": "many"}, "line 1: num_docs: "),
        ({**HQA_ROW, "context": ""}, "line 1: context: "),
        ([1], "line 1: "),
        (OOD_ROW, "give it as niah_single_1:8192="),
        ({**GLOBAL_ROW, "context_length": "long"}, "line 1: context_length: "),
        ({**GLOBAL_ROW, "id": "none"}, "line 1: id: "),
        ({**WIKI_ROW, "target_length": 0}, "line 1: target_length: "),
    ],
    ids=["no answers", "no number", "no text", "no object", "no task", "no length", "no index", "no tokens"],
)
def test_a_row_of_another_shape_is_refused_with_its_line(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(items([source_of(str(written(tmp_path / "rows.jsonl", row)))]))


def test_an_item_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: item 3 of hqa comes twice"):
        list(items([source_of(str(written(tmp_path / "rows.jsonl", HQA_ROW, HQA_ROW)))]))


def test_a_limit_counts_each_size_apart(tmp_path: Path) -> None:
    rows_ = [{**HQA_ROW, "index": index, "num_docs": size} for size in (50, 100) for index in range(3)]
    found = items([source_of(str(written(tmp_path / "rows.jsonl", *rows_)))], limit=2)
    assert [(item.size, item.index) for item in found] == [(50, 0), (50, 1), (100, 0), (100, 1)]
