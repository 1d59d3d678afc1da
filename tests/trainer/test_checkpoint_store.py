"""Checkpoints in a real store, a folder: only what is whole is resumed from."""

from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore, ObjectStore

from trainer.checkpoint_store import CheckpointStore, StoreError, files_of


@pytest.fixture(params=["folder", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return LocalStore(str(tmp_path / "bucket"), mkdir=True) if request.param == "folder" else MemoryStore()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "disk" / "global_step_20"
    (folder / "actor").mkdir(parents=True)
    (folder / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"weights" * 1000)
    (folder / "data.pt").write_bytes(b"")
    return folder


def keep(store: CheckpointStore, step: int, folder: Path) -> None:
    store.begin(step)
    digests = store.put(step, folder, files_of(folder))
    store.finish(step, files_of(folder), digests)


def test_a_finished_checkpoint_comes_back_byte_for_byte(objects: ObjectStore, checkpoint: Path, tmp_path: Path) -> None:
    store = CheckpointStore(objects)
    keep(store, 20, checkpoint)
    assert store.finished() == [20]
    assert store.fetch(20, tmp_path / "fresh") == 2
    assert {name: (tmp_path / "fresh" / name).read_bytes() for name in files_of(checkpoint)} == {
        name: (checkpoint / name).read_bytes() for name in files_of(checkpoint)
    }


def test_an_upload_that_never_ended_is_not_there(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    store.put(20, checkpoint, files_of(checkpoint))
    assert store.finished() == []
    with pytest.raises(StoreError, match="mark"):
        store.contents(20)


def test_a_step_that_lacks_a_file_is_not_marked(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    digests = store.put(20, checkpoint, ["data.pt"])
    with pytest.raises(StoreError, match="rank_0"):
        store.finish(20, files_of(checkpoint), digests)
    assert store.finished() == []


def test_a_step_that_is_written_again_is_unfinished_until_it_is_whole(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    keep(store, 20, checkpoint)
    store.begin(20)
    assert store.finished() == []


def test_only_what_is_missing_is_fetched(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    keep(store, 20, checkpoint)
    (checkpoint / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"half")
    assert store.fetch(20, checkpoint) == 1
    assert (checkpoint / "actor" / "model_world_size_1_rank_0.pt").read_bytes() == b"weights" * 1000


def test_another_runs_file_of_the_same_size_is_replaced(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    keep(store, 20, checkpoint)
    weights = checkpoint / "actor" / "model_world_size_1_rank_0.pt"
    weights.write_bytes(b"strange" * 1000)
    assert store.fetch(20, checkpoint) == 1
    assert weights.read_bytes() == b"weights" * 1000
    assert store.fetch(20, checkpoint) == 0


def test_a_mark_without_digests_compares_sizes_alone(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    store.put(20, checkpoint, files_of(checkpoint))
    store.finish(20, files_of(checkpoint), {})
    (checkpoint / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"strange" * 1000)
    assert store.fetch(20, checkpoint) == 0


def test_the_newest_are_kept_in_order_of_their_numbers(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    for step in (9, 10, 100):
        keep(store, step, checkpoint)
    store.keep_newest(2)
    assert store.finished() == [10, 100]
    with pytest.raises(StoreError):
        store.finish(9, files_of(checkpoint), {})


def test_halves_of_uploads_go_once_newer_steps_are_whole(objects: ObjectStore, checkpoint: Path) -> None:
    store = CheckpointStore(objects)
    store.put(20, checkpoint, files_of(checkpoint))
    keep(store, 40, checkpoint)
    digests = store.put(60, checkpoint, files_of(checkpoint))
    store.keep_newest(3)
    store.finish(60, files_of(checkpoint), digests)
    with pytest.raises(StoreError, match="not whole"):
        store.finish(20, files_of(checkpoint), digests)


@pytest.mark.parametrize("url", ["nonsense", "gopher://host/path"])
def test_a_url_that_means_nothing_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match=r"memloop\.checkpoints"):
        CheckpointStore.at(url)
