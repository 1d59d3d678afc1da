"""Downloads a file: resumed after a stop, bounded, checked, and under its own name only when it is whole."""

import hashlib
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Final

from evaluation.fetch.sources import PublicFile

_BLOCK = 2**20
_TIMEOUT_S: Final = 60
_PARTIAL = 206
_NOTHING_LEFT = 416


class FetchError(Exception):
    """The file cannot be had, or is not the one that was expected."""


def fetch(source: PublicFile, folder: Path) -> tuple[Path, str]:
    """Return the file's path and SHA-256; download what is missing. Raises FetchError.

    A digest that no publisher gives is written beside the file at the first download, and later files must have it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / source.file_name
    if not path.exists():
        part = path.with_name(f"{path.name}.part")
        _complete(source, part)
        _check(source, path, part)
        part.replace(path)
    return path, _check(source, path, path)


def _complete(source: PublicFile, part: Path) -> None:
    begun = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={begun}-"} if begun else {}
    request = urllib.request.Request(source.url, headers=headers)  # noqa: S310 - an address of the table
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - see above
            resumed = answer.status == _PARTIAL
            with part.open("ab" if resumed else "wb") as file:
                _copy(answer, file, room=source.most_bytes - (begun if resumed else 0), length=answer.length)
    except urllib.error.HTTPError as error:
        if error.code != _NOTHING_LEFT or not begun:
            raise FetchError(f"{source.url} answered {error.code}") from error
    except OSError as error:
        raise FetchError(f"{source.url}: {error}; run the command again to go on") from error


def _copy(answer: IO[bytes], file: IO[bytes], *, room: int, length: int | None) -> None:
    """Raises FetchError beyond the room, and when the connection ends early."""
    if length is not None and length > room:
        raise FetchError(f"the file is larger than expected: {length} bytes are left, {room} allowed")
    copied = 0
    while block := answer.read(_BLOCK):
        copied += len(block)
        if copied > room:
            raise FetchError(f"the file is larger than expected: more than {room} bytes")
        file.write(block)
    if length is not None and copied < length:
        raise FetchError(f"the connection ended after {copied} of {length} bytes; run the command again to go on")


def _check(source: PublicFile, path: Path, stored: Path) -> str:
    """Return the digest. Raises FetchError, and removes a wrong partial file, unless it is the expected one."""
    noted = path.with_name(f"{path.name}.sha256")
    with stored.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    expected = source.sha256 or (noted.read_text("ascii").strip() if noted.exists() else None)
    if expected is None:
        noted.write_text(f"{found}\n", "ascii")
    elif found != expected:
        if stored != path:
            stored.unlink()
        raise FetchError(f"{path.name} has the SHA-256 {found}, expected is {expected}")
    return found
