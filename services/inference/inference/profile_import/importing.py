"""Imports a published checkpoint's prompts, and writes them as a profile."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from inference.profile_import.card import CARD, import_card
from inference.profile_import.imported import KINDS, Imported, Kind
from inference.profile_import.reading import (
    import_memagent,
    import_memagent_direct,
    import_memagent_table,
    import_memos_reader,
    import_memreread,
)
from inference.profile_import.sources import ImportRefused, SourceFile, read_source
from memloop.profiles import ProfileError, load_profile, profile_from_files, whole_profile

_IMPORTERS: Final[Mapping[Kind, tuple[tuple[str, ...], Callable[[Sequence[SourceFile]], Imported]]]] = {
    "memreader-card": ((CARD,), import_card),
    "memagent": (("taskutils/memory_eval/utils/recurrent_boxed.py",), import_memagent),
    "memagent-table": (("taskutils/memory_eval/utils/recurrent.py",), import_memagent_table),
    "memagent-direct": (("taskutils/memory_eval/utils/openai_api.py",), import_memagent_direct),
    "memreread": (("recursive/prompts.py", "recursive/tools.py"), import_memreread),
    "memos-reader": (("src/memos/templates/mem_reader_prompts.py",), import_memos_reader),
}
"""The files that hold a checkpoint's prompts, and the function that reads them."""


def source_names(kind: Kind) -> tuple[str, ...]:
    """Return the files that an import reads, relative to the snapshot or checkout."""
    return _IMPORTERS[kind][0]


def import_prompts(kind: Kind, snapshot: Path) -> Imported:
    """Import the prompts of a snapshot or checkout. Raises ImportRefused when the source has another shape."""
    names, read = _IMPORTERS[kind]
    if not snapshot.is_dir():
        raise ImportRefused(f"{snapshot}: expected a folder with {' and '.join(names)}; found none")
    sources = [read_source(snapshot, name) for name in names]
    try:
        imported = read(sources)
        profile_from_files(whole_profile(imported.files()))
    except RecursionError as error:
        raise ImportRefused(f"{snapshot}: expected texts; found nesting without end") from error
    except ProfileError as error:
        raise ImportRefused(f"{snapshot}: the imported texts make no profile: {error}") from error
    return imported


def write_profile(imported: Imported, folder: Path) -> None:
    """Write the profile to a folder that is new or empty, whole or not at all. Raises ImportRefused."""
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise ImportRefused(f"{folder}: expected a new or an empty folder; found something there")
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ImportRefused(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        for name, text in imported.files().items():
            (draft / name).write_bytes(text.encode())
        draft.chmod(0o755)
        load_profile(draft)
        draft.rename(folder)
    except OSError as error:
        raise ImportRefused(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="profile_command", required=True)
    importing = commands.add_parser("import", help="take a published checkpoint's own prompts from your copy of it")
    importing.add_argument("kind", choices=KINDS, help="the published project, and the place of its prompts")
    importing.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="SNAPSHOT_OR_CHECKOUT",
        help="folder of the checkpoint, with its README.md, or of the project's code",
    )
    importing.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="new folder for the profile")


def run(arguments: argparse.Namespace) -> int:
    """Import, print what was taken, and return the exit status: 2 when the source is refused."""
    target: Path = arguments.to
    try:
        imported = import_prompts(arguments.kind, arguments.source)
        write_profile(imported, target)
    except ImportRefused as refusal:
        print(f"not imported: {refusal}", file=sys.stderr)
        return 2
    rows = [f"from  {source.sha256}  {source.name}" for source in imported.sources]
    rows += [f"text  {len(text.encode()):>6} bytes  {name}" for name, text in imported.texts.items()]
    rows += [f"left  {text}" for text in imported.left]
    print("\n".join([*rows, f"profile {load_profile(target).ref} in {target}"]))
    return 0
