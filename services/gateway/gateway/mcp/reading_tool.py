"""Long reading as an MCP tool: reports progress, and stops when its client disconnects."""

import asyncio
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from gateway.long_read.admission import admitted_read, opened_read
from gateway.mcp.memory_tools import Cursor, Tool
from gateway.mcp.read_parts import part_of, read_at
from gateway.mcp.surface import Call
from memloop.wire.errors import Unprocessable
from memloop.wire.keys import Scope
from memloop.wire.long_read import LongReadRequest, ReadEvent, SaveTo, Strategy
from memloop_service.http import validated


class LongRead(Tool):
    """Read a document of any length and answer a question about it, chunk by chunk with a memory of fixed size."""

    name: ClassVar[str] = "long_read"
    scope: ClassVar[Scope] = "long-read"
    read_only: ClassVar[bool] = True

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
            read_id, start = read_at(self.cursor)
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
                async with call.session.reading(call.id, read_id):
                    record = await read.run(report)
            except asyncio.CancelledError:
                call.mcp.reading.backend.metrics.upstream_abort.inc()
                raise
        call.allowance.spend(record.usage.total_tokens)
        return part_of(record, 0, most_chars=self.max_chars)
