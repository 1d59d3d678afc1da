"""The adapter in the repository, its record, and the model that set-up makes of it."""

import json
from pathlib import Path

import pytest

from trainer.small.base import SHA256
from trainer.small.card import fill
from trainer.small.shipped import ADAPTER, MOST_BYTES, RECORD, WEIGHTS, Shipped, ShippedError, make_shipped, sha256

FOLDER = Path("services/inference/models/memloop-small")


def record(folder: Path) -> Shipped:
    return Shipped.model_validate_json((folder / RECORD).read_bytes())


def test_the_adapter_is_the_one_that_its_record_names() -> None:
    assert sha256(FOLDER / ADAPTER) == record(FOLDER).adapter_sha256
    assert (FOLDER / ADAPTER).stat().st_size <= MOST_BYTES
    assert record(FOLDER).base_sha256 == SHA256


def test_what_set_up_made_is_what_the_record_names() -> None:
    assert sha256(FOLDER / WEIGHTS) == record(FOLDER).merged_sha256
    assert [file.name for file in FOLDER.glob("*.safetensors")] == [WEIGHTS]


def test_an_adapter_that_the_record_does_not_name_makes_no_model(tmp_path: Path) -> None:
    (tmp_path / ADAPTER).parent.mkdir()
    (tmp_path / ADAPTER).write_bytes(b"another")
    (tmp_path / RECORD).write_bytes((FOLDER / RECORD).read_bytes())
    with pytest.raises(ShippedError, match="another adapter"):
        make_shipped(tmp_path / "base.gguf", tmp_path)
    assert not (tmp_path / WEIGHTS).exists()


def test_the_cards_table_has_a_column_for_each_evaluation(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("Before.\n<!-- figures -->\nold\n<!-- /figures -->\nAfter.\n", "utf-8")
    measured = [
        {"adapter": None, "examples": False, "writes": [0.01, 0.003, 0.04, 200]},
        {"adapter": "adapter-9.safetensors", "examples": False, "writes": [0.94, 0.9, 0.966, 200]},
    ]
    files = [tmp_path / f"{number}.json" for number in range(len(measured))]
    for file, each in zip(files, measured, strict=True):
        file.write_text(f"40/200\n{json.dumps(each)}\n", "utf-8")
    fill(card, files)
    fill(card, files)
    lines = card.read_text("utf-8").splitlines()
    assert "|  | the base | memloop-small |" in lines
    assert "| memories of a chat all right | 1% (0 to 4; 200) | 94% (90 to 97; 200) |" in lines
    assert (lines[0], lines[-1], "old" in lines) == ("Before.", "After.", False)
