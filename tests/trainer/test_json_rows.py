"""Files of rows as people's tools write them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.json_rows import DataError, rows

VALUES = st.lists(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=20))), min_size=1)


@given(
    values=VALUES,
    as_array=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
    blanks=st.sampled_from(["", "\n", " \n"]),
)
def test_rows_are_read_from_lines_and_arrays_behind_a_byte_order_mark(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], as_array: bool, mark: str, blanks: str
) -> None:
    file = tmp_path_factory.mktemp("rows") / "rows.json"
    written = json.dumps(values) if as_array else "\n".join(map(json.dumps, values))
    file.write_text(mark + blanks + written + blanks, "utf-8")
    assert [row for _, row in rows(file, block_chars=3)] == values


@pytest.mark.parametrize("text", ["", "\n \n", "[]", " [ ] ", "\ufeff"])
def test_a_file_without_a_row_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"empty\.jsonl holds no row"):
        list(rows(file))
