"""The table of figures in the small model's card."""

import json
from pathlib import Path

from trainer.small.card import fill


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
