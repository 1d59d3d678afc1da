"""What an export refuses before it merges anything."""

from pathlib import Path

import pytest

from memloop.profiles import load_profile
from tests.dialogues.scripted import TINY
from trainer.rollout.export import export_checkpoint
from trainer.rollout.export_record import ExportError

PROFILE = load_profile("tiny")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "global_step_2"
    (folder / "actor" / "huggingface").mkdir(parents=True)
    (folder / "actor" / "fsdp_config.json").write_text("{}", "utf-8")
    return folder


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not a checkpoint of a run"):
        export_checkpoint(tmp_path, TINY, tmp_path / "out", PROFILE)


def test_a_base_without_tokenizer_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"has no tokenizer\.json, config\.json"):
        export_checkpoint(checkpoint, tmp_path, tmp_path / "out", PROFILE)


def test_a_checkpoint_of_megatron_is_refused_with_the_way_to_convert_it(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "actor" / "fsdp_config.json").unlink()
    with pytest.raises(ExportError, match="merge --backend megatron"):
        export_checkpoint(checkpoint, TINY, tmp_path / "out", PROFILE)


def test_nothing_is_overwritten(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ExportError, match="exists already"):
        export_checkpoint(checkpoint, TINY, tmp_path / "out", PROFILE)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_checkpoint_without_shards_leaves_nothing_behind(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises((ImportError, OSError, ValueError)):
        export_checkpoint(checkpoint, TINY, tmp_path / "out", PROFILE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["global_step_2"]
