"""Answers of the API with 100,000 memories and a read of 14,000 chunks, in its own shapes."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs, urlsplit

import orjson

from memloop.wire.long_read import LongRead, Progress, ReadEvent
from memloop.wire.memory import MemoryItem

MEMORIES: Final = 100_000
CHUNKS: Final = 14_000
READ_ID: Final = "lr_bench"
_THEN: Final = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)
_NOTE: Final = "The ship left the harbour of Hull with note {} in its log, and the wind came from the north-west. "
_NOTES: Final = 12


def answer(url: str) -> tuple[str, bytes] | None:
    """The content type and the body that the API gives for the URL; None for one that the console need not have."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if parts.path == "/v1/entities":
        one = {"id": "ann", "name": "ann", "type": "user", "total_memories": MEMORIES}
        return _json({"results": [one], "total": 1})
    if parts.path == "/v1/memory":
        return _json(_page(int(query.get("cursor") or 0), int(query["limit"])))
    if parts.path == "/v1/memory/buffers":
        return _json({"buffers": []})
    if parts.path == "/v1/memory/events":
        return _json({"events": [], "next_cursor": None})
    if parts.path == f"/v1/long-read/{READ_ID}":
        return ("text/event-stream", b"".join(_events())) if "stream" in query else _json(_read("in_progress"))
    return None


def _json(value: object) -> tuple[str, bytes]:
    return "application/json", orjson.dumps(value)


def _page(start: int, limit: int) -> dict[str, object]:
    end = min(start + limit, MEMORIES)
    return {"items": [_item(number) for number in range(start, end)], "next_cursor": str(end) if end < MEMORIES else ""}


def _item(number: int) -> object:
    return MemoryItem(
        id=f"m{number}",
        memory=f"Ann noted on day {number} that {_NOTE.format(number)}",
        key=f"note {number}",
        memory_type="UserMemory",
        tags=("harbour",),
        user_id="ann",
        version=1,
        status="activated",
        valid_from=_THEN,
        created_at=_THEN,
        updated_at=_THEN,
        hash="h",
    ).model_dump(mode="json")


def _read(status: str) -> object:
    return LongRead.model_validate(
        {
            "id": READ_ID,
            "status": status,
            "created_at": int(_THEN.timestamp()),
            "model": "m",
            "strategy": "memagent",
            "progress": _progress(CHUNKS if status == "completed" else 0),
            "output_text": "The log has the note.",
        }
    ).model_dump(mode="json")


def _progress(done: int) -> Progress:
    return Progress(chunks_done=done, chunks_total=CHUNKS, passes_max=1)


def _events() -> Iterator[bytes]:
    """A memory of twelve sentences, about 1,200 characters, of which every chunk changes one."""
    memory = [_NOTE.format(number) for number in range(_NOTES)]
    for chunk in range(CHUNKS):
        memory[chunk % _NOTES] = _NOTE.format(chunk)
        text, done = "".join(memory), _progress(chunk + 1)
        yield _event(
            {
                "type": "long_read.chunk.completed",
                "sequence_number": chunk,
                "chunk": chunk,
                "memory": text,
                "tokens": 5_000,
                "progress": done,
            }
        )
    yield _event({"type": "long_read.completed", "sequence_number": CHUNKS, "read": _read("completed")})


def _event(fields: dict[str, object]) -> bytes:
    event = ReadEvent.model_validate(fields)
    return b"event: " + event.type.encode() + b"\ndata: " + event.model_dump_json(exclude_none=True).encode() + b"\n\n"
