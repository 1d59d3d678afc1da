"""What our processes write is their user's alone."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from gateway.files.storage import Storage
from memloop_cli.home import Home, StackNote
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

_STORE = """
import asyncio, sys
from pathlib import Path
from memloop_service.private_files import make_files_private
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

async def main():
    store = QdrantEdge(Path(sys.argv[1]), flush_s=3600)
    await store.open(CollectionSpec("m", 4))
    await store.close()

make_files_private()
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def usual_umask() -> Generator[None]:
    """The one that most systems give."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_the_files_of_the_vectors_are_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "edge"
    subprocess.run([sys.executable, "-c", _STORE, str(folder)], check=True)
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in (folder, *folder.rglob("*"))}
    assert modes == {(True, 0o700), (False, 0o600)}


async def test_an_existing_data_folder_is_taken_from_other_users(tmp_path: Path) -> None:
    folder = tmp_path / "edge"
    folder.mkdir(mode=0o755)
    store = QdrantEdge(folder, flush_s=3600)
    await store.open(CollectionSpec("m", 4))
    await store.close()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("exists", [True, False])
def test_the_folder_of_uploaded_files_is_taken_from_other_users(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "my files"
    if exists:
        folder.mkdir(mode=0o755)
    Storage.at(folder.as_uri())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folder_of_the_local_stack_is_taken_from_other_users(tmp_path: Path) -> None:
    folder = tmp_path / ".memloop"
    folder.mkdir(mode=0o755)
    with Home(folder).held(StackNote(pid=1, status="starting", url="", ports={})):
        assert folder.stat().st_mode & 0o777 == 0o700
