"""The documents that a command line names: files, folders, patterns, URLs, standard input."""

import codecs
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from memloop.wire.long_read import MAX_FILES
from memloop_cli.errors import BadInput

_SUFFIXES: Final = frozenset(
    (
        *(".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org", ".tex"),
        *(".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".ipynb", ".xml", ".yaml", ".yml", ".toml", ".ini", ".svg"),
        *(".log", ".html", ".htm", ".xhtml", ".mhtml", ".mht", ".srt", ".vtt", ".ics", ".vcf", ".eml", ".mbox", ".mbx"),
        *(".pdf", ".docx", ".docm", ".dotx", ".pptx", ".pptm", ".ppsx", ".xlsx", ".xlsm", ".xlsb", ".xls", ".xltx"),
        *(".odt", ".ods", ".odp", ".fodt", ".fods", ".fodp", ".epub", ".rtf"),
        *(".py", ".js", ".ts", ".java", ".kt", ".go", ".rs", ".rb"),
        *(".c", ".h", ".cpp", ".hpp", ".cs", ".php", ".swift", ".scala", ".sh", ".sql"),
    )
)
"""What a folder's files are read by, beside names without a dot; a file that is named itself may have any."""
_BINARY: Final = {b"%PDF-": ".pdf", b"PK\x03\x04": ".docx"}
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
"""How texts in UTF-16 and UTF-32 begin; the mark of UTF-32-LE begins as that of UTF-16-LE. The gateway decodes them."""
_INLINE_CHARS: Final = 4_000_000
"""Longer texts are uploaded, also alone."""
_EXTRACTED: Final = frozenset(
    (
        *(".html", ".htm", ".xhtml", ".mhtml", ".mht", ".eml", ".mbox", ".mbx", ".rtf", ".ics", ".vcf"),
        *(".json", ".jsonl", ".ndjson", ".ipynb", ".log", ".xml", ".svg"),
    )
)
"""Texts from which the gateway takes the words."""
_MARKED: Final = (b"<!doctype", b"<html", b"<?xml", b"{\\rtf", b"from ", b"begin:v")
"""How such texts begin that have another name, in lower case."""
_SAMPLE_BYTES: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file of this machine, under the name that chunks and evidence show."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class UrlSource:
    """A page that the gateway downloads."""

    url: str


@dataclass(frozen=True, slots=True)
class PipedSource:
    """What standard input holds."""

    content: bytes

    @property
    def name(self) -> str:
        """A file name by its first bytes."""
        suffixes = (suffix for start, suffix in _BINARY.items() if self.content.startswith(start))
        return f"standard-input{next(suffixes, '.txt')}"


Source: TypeAlias = FileSource | UrlSource | PipedSource


@dataclass(frozen=True, slots=True)
class Found:
    """The documents in their order, and the files of folders that are left out, each with its reason."""

    sources: tuple[Source, ...]
    left_out: tuple[str, ...] = ()


def found(names: Sequence[str]) -> Found:
    """Find the documents, each file once. Raises BadInput for a name without any, and for more than a read takes."""
    all_found = [_found(name) for name in names]
    sources = _each_once(source for one in all_found for source in one.sources)
    left_out = [line for one in all_found for line in one.left_out]
    if len(sources) > MAX_FILES:
        raise BadInput(f"these are {len(sources)} documents; one read takes at most {MAX_FILES}")
    return Found(tuple(_told_apart(sources)), tuple(left_out))


def _each_once(sources: Iterable[Source]) -> list[Source]:
    """Leave out a file that an earlier name has found, such as that of its folder."""
    by_place: dict[Path | Source, Source] = {}
    for source in sources:
        by_place.setdefault(source.path.resolve() if isinstance(source, FileSource) else source, source)
    return list(by_place.values())


def inline_text(source: Source) -> str | None:
    """Return the text of a plain text, to be sent in the request.

    None for what must be extracted, is not UTF-8 or is long. Raises BadInput for a file that is empty or binary.
    """
    if isinstance(source, UrlSource):
        return None
    name = source.name if isinstance(source, PipedSource) else str(source.path)
    raw = source.content if isinstance(source, PipedSource) else source.path.read_bytes()
    if raw.startswith((*_BINARY, *_WIDE)) or Path(name).suffix.lower() in _EXTRACTED:
        return None
    head = raw[:_SAMPLE_BYTES]
    if 3 * head.count(0) > len(head) or b"\x1b$" in raw or head.lstrip().lower().startswith(_MARKED):
        return None  # two bytes a character have a NUL in nearly every second one
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None  # the gateway decodes other texts
    _refuse_no_text(text, name)
    return text if len(text) <= _INLINE_CHARS else None


def document_text(path: Path) -> str:
    """Read a text file. Raises BadInput if it is not text."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        way_out = "iconv -t UTF-8 converts another encoding"
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start}): is it an image? {way_out}") from error
    _refuse_no_text(text, str(path))
    return text


def _refuse_no_text(text: str, name: str) -> None:
    if "\0" in text:
        raise BadInput(f"{name} is binary: it contains NUL")
    if not text.strip():
        raise BadInput(f"{name} is empty")


def _found(name: str) -> Found:
    if name == "-":
        return Found((PipedSource(sys.stdin.buffer.read()),))
    if name.startswith(("http://", "https://")):
        return Found((UrlSource(name),))
    path = Path(name)
    if path.is_dir():
        return _in_folder(path)
    if path.is_file():
        return Found((FileSource(path, path.name),))
    matches = sorted(match for match in _matching(path) if match.is_file())
    if not matches:
        raise BadInput(f"there is no file {name}")
    return Found(tuple(FileSource(match, match.name) for match in matches))


def _matching(pattern: Path) -> Iterable[Path]:
    """Return what a pattern that the shell left alone matches. Raises BadInput for a pattern that is none."""
    if not any(sign in str(pattern) for sign in "*?["):
        return ()
    root = Path(pattern.anchor)
    try:
        return root.glob(str(pattern.relative_to(root)))
    except (ValueError, NotImplementedError) as error:
        raise BadInput(f"{pattern} is not a valid pattern") from error


def _in_folder(folder: Path) -> Found:
    inside = sorted(path for path in folder.rglob("*") if path.is_file() and not _hidden(path.relative_to(folder)))
    reasons = {path: _unread(path) for path in inside}
    sources = tuple(FileSource(path, path.name) for path, reason in reasons.items() if not reason)
    if not sources:
        raise BadInput(f"the folder {folder} holds no document that can be read")
    return Found(sources, tuple(f"{path}: {reason}" for path, reason in reasons.items() if reason))


def _unread(path: Path) -> str:
    """Return why a file of a folder is left out; empty if it is read."""
    if path.suffix and path.suffix.lower() not in _SUFFIXES:
        return "not a kind of document that is read"
    try:
        with path.open("rb") as file:
            head = file.read(_SAMPLE_BYTES)
    except OSError as error:
        return f"it cannot be opened ({error.strerror})"
    if not path.suffix and b"\0" in head and not head.startswith(tuple(_BINARY)):
        return "not a kind of document that is read"
    return "" if head else "it is empty"


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _told_apart(sources: Iterable[Source]) -> list[Source]:
    """Name files that share a name by their folders too."""
    sources = list(sources)
    names = Counter(source.name for source in sources if isinstance(source, FileSource))
    return [
        FileSource(source.path, " - ".join(part for part in source.path.parts if part not in ("/", "..")))
        if isinstance(source, FileSource) and names[source.name] > 1
        else source
        for source in sources
    ]
