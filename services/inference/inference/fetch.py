"""Fetches a published checkpoint from object storage into a folder of the model cache.

A file that is there with its size and checksum is kept, a partial one is continued, and a file with another checksum is
never put in place. ``files.json`` is written last: with it, the folder is complete. One process at a time works on a
folder, so replicas that share a cache download once.
"""

# One overload of obstore.get is partly unknown to pyright.
# pyright: reportUnknownMemberType=false
import argparse
import fcntl
import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url
from pydantic import ValidationError

from memloop.wire.checkpoint import FILES, PublishedFile, PublishedFiles

if TYPE_CHECKING:  # these imports are for type checkers only
    from obstore.store import ClientConfig, RetryConfig

_BLOCK_BYTES: Final = 8 << 20
_AT_ONCE: Final = 4
_TIMES: Final["ClientConfig"] = {"timeout": "120s", "connect_timeout": "5s"}
_RETRIES: Final["RetryConfig"] = {"max_retries": 10, "retry_timeout": timedelta(minutes=5)}


class FetchError(RuntimeError):
    """The checkpoint cannot be fetched, or differs from its list of files. What is there is kept."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The files of the checkpoint, how many bytes were loaded, and how many were there already."""

    files: int
    loaded_bytes: int
    kept_bytes: int


def fetch(url: str, folder: Path) -> Fetched:
    """Fetch the checkpoint at ``s3://…``, ``gs://…``, ``az://…`` or ``file:///…``. Raises FetchError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".fetching").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            plain: ClientConfig = {"allow_http": os.environ.get("AWS_ALLOW_HTTP", "") == "true"}
            if url.startswith("file:"):
                store = from_url(url)
            else:
                store = from_url(url, client_options=_TIMES | plain, retry_config=_RETRIES)
            try:
                raw = bytes(obstore.get(store, FILES).bytes())
            except FileNotFoundError as error:
                reason = "nothing was published there, or the upload has not ended"
                raise FetchError(f"{url} has no {FILES}: {reason}") from error
            try:
                published = PublishedFiles.model_validate_json(raw)
            except ValidationError as error:
                raise FetchError(f"{url}/{FILES} is not a list of files: {error.errors()[0]['msg']}") from error
            whole = (folder / FILES).is_file() and (folder / FILES).read_bytes() == raw
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                work = [
                    pool.submit(_ensured, store, folder / name, each, trusted=whole)
                    for name, each in published.files.items()
                ]
                loaded = sum(each.result() for each in work)
            if not whole:
                file = folder / FILES
                part = file.with_name(f"{file.name}.part")
                part.write_bytes(raw)
                part.replace(file)
            return Fetched(len(published.files), loaded, sum(each.size for each in published.files.values()) - loaded)
    except (BaseError, ValueError, OSError) as error:
        raise FetchError(f"{url} cannot be fetched into {folder}: {error}") from error


def _ensured(store: ObjectStore, file: Path, published: PublishedFile, *, trusted: bool) -> int:
    """Put the file in place and return the number of bytes that were loaded. ``trusted``: its size suffices."""
    if file.is_file() and file.stat().st_size == published.size and (trusted or _sha256(file) == published.sha256):
        return 0
    part = file.with_name(f"{file.name}.part")
    before = part.stat().st_size if part.is_file() else 0
    if before > published.size:
        part.unlink()
        before = 0
    if before < published.size or not part.is_file():
        # Append what comes after so many bytes
        got = obstore.get(store, file.name, options={"range": {"offset": before}} if before else {})
        with part.open("ab") as opened:
            for block in got.stream(min_chunk_size=_BLOCK_BYTES):
                opened.write(block)
    if (found := _sha256(part)) != published.sha256:
        part.unlink()
        raise FetchError(f"{file.name} has the checksum {found[:12]}…, and was published with {published.sha256[:12]}…")
    part.replace(file)
    return published.size - before


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", help="where `python -m trainer publish` put it: s3://bucket/folder, gs://…, file:///…")
    parser.add_argument("folder", type=Path, help="of the model cache; MEMLOOP_MODEL_PATH then names it")


def run(arguments: argparse.Namespace) -> int:
    """Fetch, and print what was loaded. Returns 1 with a reason when that failed; run it again to resume."""
    began = time.monotonic()
    try:
        fetched = fetch(arguments.url, arguments.folder)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    seconds = time.monotonic() - began
    print(
        f"{arguments.folder}: {fetched.files} files, {fetched.loaded_bytes / 1e6:.1f} MB loaded in {seconds:.1f} s, "
        f"{fetched.kept_bytes / 1e6:.1f} MB there already"
    )
    return 0
