"""Stores checkpoints in object storage: a folder for each step, and a mark for each complete one.

    global_step_40/actor/model_world_size_8_rank_0.pt     the files as they lie on the disk
    finished/40.json                                      their names, sizes and digests, written when all are there

A step without its mark is an incomplete upload and is never resumed from. The mark is deleted first when a step is
deleted or rewritten.
"""

# One overload of obstore.list is partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url
from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:  # these imports are for type checkers only
    from obstore.store import ClientConfig, RetryConfig

_PART_BYTES: Final = 16 << 20
"""S3 takes at most 10,000 parts: files of up to 156 GiB."""
_BLOCK_BYTES: Final = 8 << 20
_MARKS: Final = "finished"
_STEP: Final = "global_step_"
_TIMES: Final[ClientConfig] = {"timeout": "120s", "connect_timeout": "5s"}
_RETRIES: Final[RetryConfig] = {"max_retries": 10, "retry_timeout": timedelta(minutes=5)}
"""Long retries: a run that has lasted for hours waits for its storage."""


class StoreError(RuntimeError):
    """The storage cannot be used, or its content differs from the upload."""


class _Mark(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    files: dict[str, int]
    sha256: dict[str, str] = {}


def store_at(url: str) -> ObjectStore:
    """Open ``s3://bucket/prefix``, ``gs://…``, ``az://…`` or ``file:///folder`` (created if missing).

    Credentials come from the providers' own variables, including ``AWS_ENDPOINT`` and ``AWS_ALLOW_HTTP`` (obstore reads
    the last one itself only if no options are given). Raises BaseError, ValueError or OSError for an invalid URL.
    """
    if url.startswith("file:"):
        return from_url(url, mkdir=True)
    plain: ClientConfig = {"allow_http": os.environ.get("AWS_ALLOW_HTTP", "") == "true"}
    return from_url(url, client_options=_TIMES | plain, retry_config=_RETRIES)


def step_folder(step: int) -> str:
    """Return the folder name that verl uses."""
    return f"{_STEP}{step}"


def files_of(folder: Path) -> dict[str, int]:
    """Map names below the folder to sizes in bytes; empty for a missing folder."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


class CheckpointStore:
    """The checkpoints of one run under one URL. Methods raise StoreError."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def at(cls, url: str) -> CheckpointStore:
        """Open the storage at the URL, as ``store_at`` does. Raises ValueError for an invalid URL."""
        try:
            return cls(store_at(url))
        except (BaseError, ValueError, OSError) as error:
            raise ValueError(f"memloop.checkpoints={url}: {error}") from error

    def finished(self) -> list[int]:
        """List the complete steps, oldest first."""
        try:
            marks = [meta["path"] for page in obstore.list(self._store, _MARKS) for meta in page]
        except (BaseError, OSError) as error:
            raise StoreError(f"the checkpoints cannot be listed: {error}") from error
        return sorted(int(Path(mark).stem) for mark in marks if Path(mark).stem.isdigit())

    def contents(self, step: int) -> dict[str, int]:
        """Return the files of a complete step, with their sizes."""
        return self._read_mark(step).files

    def begin(self, step: int) -> None:
        """Mark the step as incomplete from now on."""
        self._remove([_mark(step)])

    def put(self, step: int, folder: Path, names: Iterable[str]) -> dict[str, str]:
        """Upload files of the step's folder; return their SHA-256 digests."""
        digests: dict[str, str] = {}
        for name in names:
            try:
                digests[name] = _sha256(folder / name)
                obstore.put(self._store, f"{step_folder(step)}/{name}", folder / name, chunk_size=_PART_BYTES)
            except (BaseError, OSError) as error:
                raise StoreError(f"{name} of step {step} could not be stored: {error}") from error
        return digests

    def finish(self, step: int, files: Mapping[str, int], digests: Mapping[str, str]) -> None:
        """Mark the step as complete. Raises StoreError if a file is missing or has another size."""
        prefix = step_folder(step)
        try:
            held = {meta["path"]: meta["size"] for page in obstore.list(self._store, prefix) for meta in page}
            wrong = [name for name, size in files.items() if held.get(f"{prefix}/{name}") != size]
            if wrong or not files:
                raise StoreError(f"step {step} is not whole in the storage: {', '.join(wrong) or 'no files'}")
            mark = _Mark(files=dict(files), sha256=dict(digests))
            obstore.put(self._store, _mark(step), mark.model_dump_json().encode())
        except (BaseError, OSError) as error:
            raise StoreError(f"step {step} could not be marked: {error}") from error

    def fetch(self, step: int, folder: Path) -> int:
        """Download the step's files that its folder lacks or has otherwise; return their number.

        Equal sizes prove nothing: the same step of another run of the same model has them too.
        """
        there, mark = files_of(folder), self._read_mark(step)
        try:
            missing = [
                name
                for name, size in mark.files.items()
                if there.get(name) != size or (name in mark.sha256 and mark.sha256[name] != _sha256(folder / name))
            ]
        except OSError as error:
            raise StoreError(f"{folder} cannot be compared with step {step}: {error}") from error
        for name in missing:
            self._fetch(f"{step_folder(step)}/{name}", folder / name)
        return len(missing)

    def keep_newest(self, count: int) -> None:
        """Delete the steps before the newest complete ones, partial uploads too, their marks first."""
        kept = self.finished()[-count:]
        for step in self._begun():
            if kept and step < kept[0]:
                self.begin(step)
                self._remove_below(step_folder(step))

    def _read_mark(self, step: int) -> _Mark:
        try:
            return _Mark.model_validate_json(bytes(obstore.get(self._store, _mark(step)).bytes()))
        except (BaseError, OSError, ValidationError) as error:
            raise StoreError(f"step {step} has no readable mark: {error}") from error

    def _begun(self) -> list[int]:
        try:
            folders = obstore.list_with_delimiter(self._store)["common_prefixes"]
        except (BaseError, OSError) as error:
            raise StoreError(f"the checkpoints cannot be listed: {error}") from error
        numbers = [folder.removeprefix(_STEP) for folder in folders]
        return [int(number) for number in numbers if number.isdigit()]

    def _remove_below(self, folder: str) -> None:
        try:
            pages = list(obstore.list(self._store, folder))
        except (BaseError, OSError) as error:
            raise StoreError(f"{folder} cannot be listed: {error}") from error
        for page in pages:
            self._remove([meta["path"] for meta in page])

    def _fetch(self, path: str, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.part")
        try:
            with part.open("wb") as opened:
                for block in obstore.get(self._store, path).stream(min_chunk_size=_BLOCK_BYTES):
                    opened.write(block)
            part.replace(file)
        except (BaseError, OSError) as error:
            raise StoreError(f"{path} could not be fetched: {error}") from error

    def _remove(self, paths: list[str]) -> None:
        """Delete the paths; missing ones are ignored."""
        try:
            obstore.delete(self._store, paths)
        except FileNotFoundError:
            return
        except (BaseError, OSError) as error:
            raise StoreError(f"{', '.join(paths)} could not be deleted: {error}") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _mark(step: int) -> str:
    return f"{_MARKS}/{step}.json"
