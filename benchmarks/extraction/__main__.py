"""Compares readers on files: ``python -m benchmarks.extraction FOLDER… [--reader NAME]…``.

Each reader reads each file in a process that is begun anew after a crash or a minute of CPU time. Printed, by format:
the share of the reference's words that the reader found (mean over files, and files below half), the order of what it
found (the longest common subsequence of words), pages right, CPU time, memory, and files that it did not read.

For PDF the reference is the better one of poppler and PDFium: the one with more words. A reader that parts a word
(``n e t``) has more of them, so it is the one with fewer words where both find the same letters, or where the other
finds fewer letters. A reader is passed over that takes other bytes for Latin-1, or that tears the letters of lines
which both find. A file is set aside where no reader is left, or where the better one prints numbers of glyphs and no
letters. ``plain_…`` has none of these rules: all files, and the better reader is the one with more words. Files that
poppler does not read to the end are named, and set aside in both. The last line is one JSON object.
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.extraction.readers import CPU_S, ONLY_PDF, installed
from benchmarks.extraction.reference import better, is_coded, reference, words

_LEAST_WORDS: Final = 5
_ORDER_WORDS: Final = 500
"""The order is measured on so many words at the beginning of a file."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a reader made of the files of a format. Shares are 0 to 1."""

    files: int = 0
    found: float = 0.0
    below_half: int = 0
    plain_files: int = 0
    plain_found: float = 0.0
    plain_below_half: int = 0
    order: float = 0.0
    pages: float = 0.0
    cpu_s: float = 0.0
    mib: int = 0
    failed: int = 0
    crashed: int = 0


@dataclass(slots=True)
class _Process:
    """A reader's process; ``read`` begins it again when it is gone."""

    name: str
    _running: "subprocess.Popen[str] | None" = field(default=None)

    def read(self, path: Path) -> dict[str, Any]:
        """Return what the reader says of a file."""
        if self._running is None or self._running.poll() is not None:
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.extraction.readers", self.name]
            self._running = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        process = self._running
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if line.startswith("{"):
            return dict(json.loads(line))
        process.wait()
        return {
            "text": "",
            "failure": "crashed or over its CPU time",
            "cpu_s": float(CPU_S),
            "mib": 0,
            "crashed": True,
        }


def main(
    folders: Annotated[list[Path], typer.Argument(exists=True)],
    reader: Annotated[list[str] | None, typer.Option(help="a reader; all that are installed by default")] = None,
) -> None:
    """Compare readers on all files of folders."""
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    by_format = defaultdict[str, list[Path]](list)
    for path in files:
        by_format[path.suffix.lower()].append(path)
    console, rows = Console(width=120), list[dict[str, object]]()
    for kind, paths in sorted(by_format.items()):
        told = {path: reference(path) for path in paths}
        references = {path: text for path, text in told.items() if text is not None}
        for path in told.keys() - references.keys():
            console.print(f"set aside, its reference has no end: {path.name}")
        for name in reader or installed():
            if kind == ".pdf" or name not in ONLY_PDF:
                rows.append({"format": kind, "reader": name, **asdict(_score(name, paths, references))})
    table = Table(*(rows[0] if rows else ()))
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)
    print(json.dumps(rows))


def _score(name: str, paths: Sequence[Path], references: Mapping[Path, str]) -> Score:
    process = _Process(name)
    said = {path: process.read(path) for path in paths}
    plain = told = references
    if paths[0].suffix.lower() == ".pdf":
        pairs = {path: (text, _by_pdfium(path)) for path, text in references.items()}
        plain = {path: max(pair, key=lambda text: len(words(text))) for path, pair in pairs.items()}
        measured = {path: better(*pair) for path, pair in pairs.items()}
        told = {path: text for path, text in measured.items() if not is_coded(text)}
    plain, told = _with_text(plain), _with_text(told)
    shares = [_found(words(said[path]["text"]), words(text)) for path, text in told.items()]
    plain_shares = [_found(words(said[path]["text"]), words(text)) for path, text in plain.items()]
    orders = [_order(words(said[path]["text"]), words(text)) for path, text in told.items()]
    paged = [path for path, text in told.items() if "\f" in text]
    pages = [said[path]["text"].count("\f") == told[path].count("\f") for path in paged]
    return Score(
        files=len(told),
        found=_mean(shares),
        below_half=sum(share < 0.5 for share in shares),
        plain_files=len(plain),
        plain_found=_mean(plain_shares),
        plain_below_half=sum(share < 0.5 for share in plain_shares),
        order=_mean(orders),
        pages=_mean(pages),
        cpu_s=sum(one["cpu_s"] for one in said.values()),
        mib=max(one["mib"] for one in said.values()),
        failed=sum(bool(one["failure"]) for one in said.values()),
        crashed=sum("crashed" in one for one in said.values()),
    )


_PDFIUM: Final = _Process("pdfium")
_SEEN: Final[dict[Path, str]] = {}


def _by_pdfium(path: Path) -> str:
    if path not in _SEEN:
        _SEEN[path] = str(_PDFIUM.read(path)["text"])
    return _SEEN[path]


def _with_text(texts: Mapping[Path, str]) -> Mapping[Path, str]:
    return {path: text for path, text in texts.items() if len(words(text)) >= _LEAST_WORDS}


def _found(said: Sequence[str], told: Sequence[str]) -> float:
    return (Counter(said) & Counter(told)).total() / len(told)


def _order(said: Sequence[str], told: Sequence[str]) -> float:
    """Return the longest common subsequence as a share of the words that both have."""
    told = told[:_ORDER_WORDS]
    common = Counter(said) & Counter(told)
    ours = list(_kept(said, common.copy()))
    theirs = list(_kept(told, common.copy()))
    if not ours:
        return 0.0
    best = [0] * (len(theirs) + 1)
    for one in ours:
        before = 0
        for at, other in enumerate(theirs, start=1):
            before, best[at] = best[at], before + 1 if one == other else max(best[at], best[at - 1])
    return best[-1] / len(ours)


def _kept(text: Iterable[str], common: "Counter[str]") -> Iterator[str]:
    for word in text:
        if common[word] > 0:
            common[word] -= 1
            yield word


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


if __name__ == "__main__":
    typer.run(main)
