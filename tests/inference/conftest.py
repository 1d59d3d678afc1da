"""A checkpoint folder without weights: all that the launcher itself looks at; and launchers that a test starts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.word_tokenizer import word_tokenizer
from tests.inference.launcher_process import Launcher, Start


def write_checkpoint(folder: Path) -> Path:
    """A folder that looks like a checkpoint."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    (folder / "tokenizer.json").write_text(word_tokenizer())
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "my-model")


@pytest.fixture
def start(checkpoint: Path) -> Iterator[Start]:
    started: list[Launcher] = []

    def start_one(behaviour: str = "ready", *, ports: tuple[int, int] | None = None, **settings: str) -> Launcher:
        started.append(Launcher(checkpoint, behaviour, ports=ports, **settings))
        return started[-1]

    yield start_one
    for launcher in started:
        launcher.close()


@pytest.fixture
def ready(start: Start) -> Launcher:
    launcher = start()
    launcher.wait_until("/readyz", 200)
    return launcher
