"""Long reading as an MCP tool: reports progress, stops when its client disconnects, and gives a result in parts.

The parts of a text are joined by their client. A cursor names the read and the place in it; the read is stored, so no
part is read from the document again.
"""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from gateway.long_read.admission import admitted_read, opened_read
from gateway.mcp.memory_tools import Cursor, Tool, place_of
from gateway.mcp.surface import Call
from memloop.wire import long_read as wire
from memloop.wire.errors import Unprocessable
from memloop.wire.long_read import Evidence, LongReadRequest, ReadEvent, SaveTo, Strategy, SubQuestion
from memloop_service.http import json_text, validated

_PIECE_CHARS: Final = 40
"""Short, so that a piece fits beside the other fields whatever JSON makes of its characters."""
_CURSOR_CHARS: Final = 100
_Piece: TypeAlias = tuple[str, str | Evidence | SubQuestion]
"""A field of the result, and a text or an entry of it."""


class ReadPart(wire.LongRead):
    """The result of a read, or a part of a long one."""

    next_cursor: str | None = None


def part_of(record: wire.LongRead, start: int, *, most_chars: int) -> ReadPart:
    """Return the result from this place on, as much of it as fits; at least one piece."""
    bare = record.model_copy(update={"output_text": "", "memory": "", "evidence": (), "subquestions": ()})
    left = most_chars - _size(bare) - _CURSOR_CHARS
    pieces: list[_Piece] = [
        *(("output_text", piece) for piece in _cut(record.output_text)),
        *(("evidence", entry) for entry in record.evidence),
        *(("subquestions", entry) for entry in record.subquestions),
        *(("memory", piece) for piece in _cut(record.memory)),
    ]
    end = start
    for _, value in pieces[start:]:
        left -= len(json_text(value)) if isinstance(value, str) else _size(value) + 1
        if left < 0 and end > start:
            break
        end += 1
    taken = pieces[start:end]
    texts = {name: "".join(str(value) for field, value in taken if field == name) for name in ("output_text", "memory")}
    lists = {name: tuple(value for field, value in taken if field == name) for name in ("evidence", "subquestions")}
    following = f"{end}.{record.id}" if end < len(pieces) else None
    return ReadPart(**dict(bare.model_copy(update={**texts, **lists})), next_cursor=following)


def _size(model: wire.LongRead | Evidence | SubQuestion) -> int:
    return len(model.model_dump_json(exclude_none=True))


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]


class LongRead(Tool):
    """Read a document of any length and answer a question about it, chunk by chunk with a memory of fixed size."""

    model_config = ConfigDict(json_schema_extra={"required": ["question"]})

    question: str | None = Field(default=None, min_length=1)
    text: str | None = Field(default=None, description="The document. Give either text or file_id.")
    file_id: str | None = Field(default=None, description="A file uploaded to /v1/files. Give either file_id or text.")
    model: str | None = Field(default=None, description="Defaults to the reader.")
    strategy: Strategy = "memagent"
    max_rereads: Annotated[int, Field(ge=0, le=16)] = 2
    max_llm_calls: Annotated[int | None, Field(ge=1)] = None
    deadline_s: Annotated[float | None, Field(gt=0)] = None
    save_to_memory: SaveTo | None = None
    evidence: bool = Field(default=False, description="Also return where the document says what the answer says.")
    cursor: Cursor = None

    async def run(self, call: Call) -> BaseModel:
        """Run the read and return its final state, or what follows a cursor of an earlier read's."""
        if self.cursor is not None:
            place, _, read_id = self.cursor.partition(".")
            if not read_id:
                raise Unprocessable("cursor must be the next_cursor of an earlier result.", param="cursor")
            start = place_of(place)
            stored = await call.mcp.reading.records.get(call.principal.tenant, read_id)
            return part_of(stored, start, most_chars=self.max_chars)
        if self.question is None:
            raise Unprocessable("question is required.", param="question")
        given = self.model_dump(exclude={"text", "file_id", "max_chars", "cursor"}, exclude_none=True)
        document = self.model_dump(include={"text", "file_id"}, exclude_none=True)
        asked = validated(LongReadRequest, {"document": document, **given})
        with call.mcp.admission.batch_part(tenant=call.principal.tenant):
            admitted = await admitted_read(asked, call.mcp.reading, call.principal)
            await call.allowance.admit(*asked.asked, asked.document.text)
            read = await opened_read(admitted, call.mcp.reading)
            read_id = admitted.job.read_id

            async def report(event: ReadEvent) -> None:
                if event.progress is not None:
                    done, total = event.progress.chunks_done, event.progress.chunks_total
                    await call.progress(event.sequence_number, None, f"{read_id}: chunk {done} of {total}")

            try:
                async with call.reading(read_id):
                    record = await read.run(report)
            except asyncio.CancelledError:
                call.mcp.reading.backend.metrics.upstream_abort.inc()
                raise
            finally:
                call.allowance.spend(read.used_tokens)
        return part_of(record, 0, most_chars=self.max_chars)
