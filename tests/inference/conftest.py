"""A checkpoint folder without weights: all that the launcher itself looks at."""

import json
from pathlib import Path

import pytest


def write_checkpoint(folder: Path) -> Path:
    """A folder that looks like a checkpoint."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "my-model")
