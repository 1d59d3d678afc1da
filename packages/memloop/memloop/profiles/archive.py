"""The files of a profile from an archive of unknown origin: ``.zip``, ``.tar.gz`` or ``.tgz``.

It is unpacked in memory and nothing of it is ever written. Only texts of known kinds are taken, each by its bare name,
so that no name leads anywhere; what a header promises is not believed: sizes are counted while reading.
"""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from gzip import GzipFile
from pathlib import Path, PurePosixPath
from typing import Final

from memloop.profiles.profile import ProfileError

SUFFIXES: Final = (".zip", ".tar.gz", ".tgz")
KINDS: Final = frozenset({".txt", ".json", ".toml"})
MOST_FILES: Final = 64
MOST_BYTES: Final = 4 << 20
"""Of the archive itself, and of all that it unpacks to."""
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)


def is_archive(path: Path) -> bool:
    """Return whether the name is an archive's and the file exists."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def read_archive(path: Path) -> dict[str, str]:
    """Maps each file's name to its text, without a folder around all of them. Raises ProfileError with the reason."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ProfileError(f"{path.name}: more than {MOST_BYTES} bytes")
        members = _zipped(path) if path.name.lower().endswith(".zip") else _tarred(path)
        return _texts(path.name, members)
    except _BROKEN as error:
        raise ProfileError(f"{path.name} cannot be unpacked: {error}") from error


def _zipped(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                with archive.open(member) as opened:
                    yield member.filename, opened.read(MOST_BYTES + 1)


def _tarred(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as raw, GzipFile(fileobj=raw) as packed:
        unpacked = packed.read(MOST_BYTES + 1)
    if len(unpacked) > MOST_BYTES:
        raise ProfileError(f"{path.name}: unpacks to more than {MOST_BYTES} bytes")
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise ProfileError(f"{path.name}: {member.name!r} is a link or a device")
            if member.isfile() and (opened := archive.extractfile(member)) is not None:
                yield member.name, opened.read()


def _texts(archive: str, members: Iterator[tuple[str, bytes]]) -> dict[str, str]:
    texts: dict[PurePosixPath, str] = {}
    size = 0
    for name, raw in members:
        path, size = PurePosixPath(name), size + len(raw)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise ProfileError(f"{archive}: {name!r} leads out of the archive")
        if path.suffix not in KINDS:
            raise ProfileError(f"{archive}: {name!r} is not one of {', '.join(sorted(KINDS))}")
        if path in texts or len(texts) == MOST_FILES or size > MOST_BYTES:
            raise ProfileError(f"{archive}: more than {MOST_FILES} files or {MOST_BYTES} bytes, or {name!r} twice")
        try:
            texts[path] = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProfileError(f"{archive}: {name!r} is not text: {error}") from error
    folders = {path.parent for path in texts}
    if len(folders) > 1 or any(len(folder.parts) > 1 for folder in folders):
        raise ProfileError(f"{archive}: its files are in different folders")
    return {path.name: text for path, text in texts.items()}
