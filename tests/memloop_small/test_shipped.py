"""The adapter in the repository, its record, and the model that set-up makes of it, or the first `memloop up`."""

import subprocess
import time
from pathlib import Path

import pytest

from memloop_small.base import SHA256
from memloop_small.record import LEARNED, RECORD, Shipped, cache_folder
from memloop_small.shipped import ADAPTER, GGUF, MOST_BYTES, WEIGHTS, ShippedError, make_shipped, sha256
from tests.fakes.processes import clean_environment, kill

FOLDER = Path("services/inference/models/memloop-small")
PYTHON = Path(".venv-small/bin/python")
"""The environment of set-up that makes the model: it has the reader of the base's format."""


def test_the_adapter_is_the_one_that_its_record_names() -> None:
    assert sha256(LEARNED / ADAPTER) == Shipped.read().adapter_sha256
    assert (LEARNED / ADAPTER).stat().st_size <= MOST_BYTES
    assert Shipped.read().base_sha256 == SHA256


def test_what_set_up_made_is_what_the_record_names() -> None:
    assert sha256(FOLDER / WEIGHTS) == Shipped.read().merged_sha256
    assert [file.name for file in FOLDER.glob("*.safetensors")] == [WEIGHTS]


def test_an_adapter_that_the_record_does_not_name_makes_no_model(tmp_path: Path) -> None:
    (tmp_path / ADAPTER).write_bytes(b"another")
    (tmp_path / RECORD).write_bytes((LEARNED / RECORD).read_bytes())
    with pytest.raises(ShippedError, match="another adapter"):
        make_shipped(tmp_path, learned=tmp_path)
    assert not (tmp_path / WEIGHTS).exists()


def test_other_weights_have_another_folder_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "memloop" / f"memloop-small-{Shipped.read().merged_sha256[:12]}"


def making(folder: Path) -> "subprocess.Popen[str]":
    command = (PYTHON, "-m", "memloop_small", "cache", folder)
    return subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_kill_while_the_model_is_made_leaves_nothing_half(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "model"
    killed = making(folder)
    assert killed.stdout is not None
    assert [killed.stdout.readline()[:6] for _ in range(2)] == ["1 of 3", "2 of 3"]
    kill(killed)
    assert not folder.exists()
    assert list(folder.parent.glob(".making-*"))

    both = [making(folder), making(folder)]
    printed = [each.communicate()[0] for each in both]

    assert [each.returncode for each in both] == [0, 0]
    assert sorted(text.count("\n") for text in printed) == [0, 3]  # one made it, the other waited
    assert names(folder) == ["config.json", "generation_config.json", GGUF, "tokenizer.json", "tokenizer_config.json"]
    assert names(folder.parent) == ["making.lock", "model"]
    assert sha256(folder / GGUF) == sha256(FOLDER / GGUF)
    began = time.monotonic()
    assert making(folder).communicate() == ("", None)
    assert time.monotonic() - began < 10
