"""The three formats: reads a file's conversations one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import ValidationError

from trainer.data.dialogues import halumem, locomo, longmemeval
from trainer.data.dialogues.dialogue import Conversation
from trainer.data.json_rows import DataError, rows

Format: TypeAlias = Literal["locomo", "longmemeval", "halumem"]


def conversations(
    path: Path, format_: Format, *, limit: int | None = None, captions: bool = True
) -> Iterator[Conversation]:
    """Yield the file's conversations (JSON array or JSONL), at most ``limit``, read lazily.

    Without ``captions`` LoCoMo's turns have the words alone, not what their pictures show.

    Raises DataError with file and line, also for a duplicate conversation.
    """
    seen: set[str] = set()
    for line, row in rows(path):
        if limit is not None and len(seen) >= limit:
            return
        talk = _conversation(row, format_, f"{path}, line {line}", captions=captions)
        if talk.id in seen:
            raise DataError(f"{path}, line {line}: {talk.id} comes twice")
        seen.add(talk.id)
        yield talk


def _conversation(row: object, format_: Format, where: str, *, captions: bool) -> Conversation:
    try:
        match format_:
            case "locomo":
                talk = locomo.conversation(row, captions=captions)
            case "longmemeval":
                talk = longmemeval.conversation(row)
            case "halumem":
                talk = halumem.conversation(row)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'row'}: {fault['msg']}" for fault in error.errors())
        raise DataError(f"{where}: {faults}") from error
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    ids = [turn.id for turn in talk.turns]
    if not talk.sessions or len(set(ids)) != len(ids):
        raise DataError(f"{where}: {'a turn id comes twice' if talk.sessions else 'no session'}")
    return talk
