"""A gateway without a model: canned answers in the gateway's own shapes, and what it was asked."""

import asyncio
import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from aiohttp import web

from memloop.wire.chat import Json
from memloop.wire.feedback import Feedback, FeedbackRequest
from memloop.wire.long_read import Estimate, LongRead, Progress, ReadEvent, ReadUsage, SubQuestion
from memloop.wire.memory import ItemPage, MemoryItem, SearchHit, SearchResult, Written
from memloop.wire.memory_events import DecisionRecord, MemoryEvent
from memloop.wire.memory_requests import EventList, FoundMemories, MemoryList, VersionList
from memloop.wire.quality import AuditedMemory, AuditExample, AuditFinding, QualityAudit
from memloop.wire.store_requests import History, Imported, ItemVersion, LineError, MemoryLine

NOW = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)
ITEM = MemoryItem(
    id="m1",
    memory="The locker code of the user is 482.",
    key="locker code of the user",
    memory_type="UserMemory",
    tags=(),
    user_id="u1",
    version=1,
    status="activated",
    valid_from=NOW,
    created_at=NOW,
    updated_at=NOW,
    hash="h",
)
EVENT = MemoryEvent(
    event_id="evt_1",
    status="completed",
    user_id="u1",
    created_at=NOW,
    decisions=(
        DecisionRecord(action="search", query="locker code", reasoning="It may have changed."),
        DecisionRecord(action="add", reason="Stored the locker code.", reasoning="\nIt is new.\n"),
    ),
    memories=(Written(outcome="inserted", item=ITEM),),
)
READ = LongRead(
    id="lr_1",
    status="in_progress",
    created_at=0,
    model="tiny",
    strategy="memreread",
    progress=Progress(chunks_total=2, passes_max=3),
)


def events_of(read: LongRead) -> list[ReadEvent]:
    """A read of two chunks and one reread, with that end."""
    first, second = {"chunk": 0, "memory": "First.", "tokens": 9}, {"chunk": 1, "memory": "Second.", "tokens": 9}
    steps: list[dict[str, object]] = [
        {"type": "long_read.in_progress", "read": READ},
        {"type": "long_read.chunk.completed", "progress": _progress(1, 1), **first},
        {"type": "long_read.chunk.completed", "progress": _progress(1, 2), **second},
        {"type": "long_read.reread.started", "progress": _progress(2, 0), "question": "Who?"},
        {"type": "long_read.output_text.delta", "delta": read.output_text},
        {"type": f"long_read.{read.status}", "read": read},
    ]
    return [ReadEvent.model_validate({**step, "sequence_number": number}) for number, step in enumerate(steps)]


def ended(status: str, **more: object) -> LongRead:
    return READ.model_copy(
        update={
            "status": status,
            "output_text": "482",
            "memory": "Second.",
            "subquestions": (SubQuestion(question="Who?", answer="Marta"),),
            "usage": ReadUsage(input_tokens=1200, output_tokens=34, total_tokens=1234, llm_calls=7),
            **more,
        }
    )


AUDIT = QualityAudit(
    user_id="u1",
    at=ITEM.updated_at,
    memories=4,
    raw_turns=9,
    complete=True,
    feedback={"helpful": 1},
    findings=(
        AuditFinding(
            suspicion="duplicate",
            memories=1,
            share=0.25,
            by_rule={"same text": 1},
            examples=(
                AuditExample(
                    rule="same text",
                    because="they say the same",
                    count=2,
                    memories=tuple(
                        AuditedMemory(id=name, key="locker", excerpt="The locker code is 482.") for name in ("m1", "m2")
                    ),
                ),
            ),
        ),
        AuditFinding(suspicion="junk", memories=0, share=0.0, by_rule={}),
    ),
)


class FakeGateway:
    """``refusal`` answers everything with an error; ``read`` is how a read ends, None breaks its stream off.

    ``unreadable`` are names of uploads without a text, ``refused`` of those that are not taken, ``breaks`` counts the
    streams of a queued read that break off,
    and an export that is not ``whole`` lacks its last line. ``imported`` are imported versions by id.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, Json]] = []
        self.keys: list[str | None] = []
        self.refusal: tuple[int, str] | None = None
        self.read: LongRead | None = ended("completed")
        self.event = EVENT
        self.items: tuple[MemoryItem, ...] = (ITEM,)
        self.uploads: dict[str, tuple[str, bytes]] = {}
        self.unreadable: set[str] = set()
        self.refused: set[str] = set()
        self.breaks = 0
        self.imported: dict[str, MemoryItem] = {}
        self.import_lines = 0
        self.imports_before_hanging = -1
        self.hanging = threading.Event()
        self.whole = True
        self.reply: Sequence[str] = ("\n\n", "Your locker ", "code is 482.")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self._models),
            web.post("/v1/long-read", self._long_read),
            web.post("/v1/long-read/estimate", self._estimate),
            web.get("/v1/long-read", self._reads),
            web.get("/v1/long-read/lr_1", self._read_events),
            web.post("/v1/files", self._upload),
            web.post("/v1/files/from-url", self._fetch),
            web.get("/v1/files/{file_id}", self._file),
            web.post("/v1/memory/export", self._export),
            web.post("/v1/memory/import", self._import),
            web.get("/v1/memory/m1/history", self._history),
            web.delete("/v1/memory/m1", self._delete),
            web.delete("/v1/memory", self._erase),
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/memory/add", self._add),
            web.post("/v1/memory/search", self._search),
            web.get("/v1/memory/events", self._events),
            web.get("/v1/memory/events/evt_1", self._event),
            web.post("/v1/memory/events/evt_1/retry", self._retry),
            web.post("/v1/memory/events/evt_1/redecide", self._retry),
            web.post("/v1/memory/redecide", self._redecide),
            web.get("/v1/memory", self._list),
            web.get("/v1/memory/m1", self._item),
            web.post("/v1/memory/m1/feedback", self._feedback),
            web.get("/v1/memory/audit", self._audit),
            web.route("*", "/v1/memory/{item_id}{tail:.*}", self._no_memory),
        ]

    def bodies(self, path: str) -> list[Json]:
        return [body for asked, body in self.asked if asked == path]

    async def _note(self, request: web.Request) -> None:
        self.keys.append(request.headers.get("authorization"))
        self.asked.append((request.path, await request.json() if request.can_read_body else dict(request.query)))
        if self.refusal is not None:
            status, message = self.refusal
            error = {"message": message, "type": "invalid_request_error", "param": "document.text", "code": "no"}
            raise _Refused(status, json.dumps({"error": error}))

    async def _models(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"object": "list", "data": [{"id": "tiny"}]})

    async def _feedback(self, request: web.Request) -> web.Response:
        await self._note(request)
        given = FeedbackRequest.model_validate(await request.json())
        at = ITEM.updated_at
        feedback = Feedback(verdict=given.feedback, reason=given.reason, at=at) if given.feedback else None
        judged = ITEM.model_copy(update={"feedback": feedback})
        return web.json_response(judged.model_dump(mode="json"))

    async def _audit(self, request: web.Request) -> web.Response:
        return await self._answer(request, AUDIT.model_dump(mode="json"))

    async def _long_read(self, request: web.Request) -> web.StreamResponse:
        await self._note(request)
        if (await request.json()).get("background"):
            return web.json_response(READ.model_dump(mode="json", by_alias=True), status=202)
        events = events_of(self.read or ended("completed"))
        blocks = [f"event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n" for event in events]
        return await self._stream(request, [": keep-alive\n\n", *(blocks if self.read else blocks[:-1])])

    async def _estimate(self, request: web.Request) -> web.Response:
        estimate = Estimate(
            profile="p", chunks=2, document_tokens=90, max_llm_calls=3, max_input_tokens=2000, max_output_tokens=300
        )
        return await self._answer(request, estimate.model_dump(mode="json"))

    async def _reads(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"object": "list", "data": [READ.model_dump(mode="json", by_alias=True)]})

    async def _read_events(self, request: web.Request) -> web.StreamResponse:
        await self._note(request)
        after = int(request.query["starting_after"])
        events = [event for event in events_of(self.read or ended("completed")) if event.sequence_number > after]
        self.breaks, short = max(0, self.breaks - 1), self.breaks > 0
        blocks = [f"data: {event.model_dump_json(exclude_none=True)}\n\n" for event in events]
        return await self._stream(request, blocks[:2] if short else blocks)

    async def _upload(self, request: web.Request) -> web.Response:
        await self._note_only(request)
        form = await request.post()
        part = form["file"]
        assert isinstance(part, web.FileField)
        if part.filename in self.refused:
            error = {"message": "The file is too large.", "type": "invalid_request_error", "code": "file_too_large"}
            raise _Refused(413, json.dumps({"error": error}))
        file_id = f"file-{len(self.uploads) + 1}"
        self.uploads[file_id] = (part.filename, part.file.read())
        return web.json_response(self._file_object(file_id, "uploaded"))

    async def _fetch(self, request: web.Request) -> web.Response:
        await self._note(request)
        file_id = f"file-{len(self.uploads) + 1}"
        self.uploads[file_id] = (str((await request.json())["url"]), b"fetched")
        return web.json_response(self._file_object(file_id, "uploaded"))

    async def _file(self, request: web.Request) -> web.Response:
        file_id = request.match_info["file_id"]
        if file_id not in self.uploads:
            raise _Refused(404, json.dumps({"error": {"message": "File not found.", "type": "not_found_error"}}))
        name, _ = self.uploads[file_id]
        return web.json_response(self._file_object(file_id, "error" if name in self.unreadable else "processed"))

    def _file_object(self, file_id: str, status: str) -> Json:
        name, raw = self.uploads[file_id]
        details = "the file contains no text (a scan?)" if status == "error" else None
        return {
            "id": file_id, "object": "file", "bytes": len(raw), "created_at": 0, "filename": name,
            "status": status, "status_details": details,
        }  # fmt: skip

    async def _export(self, request: web.Request) -> web.Response:
        await self._note(request)
        lines = [MemoryLine(item=item, confirmed_at=NOW).model_dump_json() for item in self.items]
        return web.Response(text="\n".join([*lines, *([f'{{"exported":{len(lines)}}}'] if self.whole else [])]) + "\n")

    async def _import(self, request: web.Request) -> web.Response:
        """Keep each id once, as the store does; refuse texts that hold the word ``refused``."""
        lines = [MemoryLine.model_validate_json(line) for line in (await request.read()).splitlines()]
        if self.imports_before_hanging == 0:
            self.hanging.set()
            await asyncio.Event().wait()
        self.imports_before_hanging -= 1
        fresh, errors = 0, list[LineError]()
        for number, line in enumerate(lines, start=1):
            if "refused" in line.item.memory:
                errors.append(LineError(line=number, message="item: refused"))
                continue
            self.import_lines += 1
            fresh += line.item.id not in self.imported
            self.imported.setdefault(line.item.id, line.item)
        known = len(lines) - len(errors) - fresh
        result = Imported(imported=fresh, unchanged=known, failed=len(errors), errors=tuple(errors))
        return web.json_response(result.model_dump(mode="json"))

    async def _history(self, request: web.Request) -> web.Response:
        version = ItemVersion(**ITEM.model_dump())
        return await self._answer(request, VersionList.of(History(versions=(version,))).model_dump(mode="json"))

    async def _no_memory(self, request: web.Request) -> web.Response:
        error = {"message": "there is no such memory", "type": "not_found_error", "param": "id", "code": "not_found"}
        return await self._answer(request, {"error": error}, status=404)

    async def _delete(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"id": "m1", "object": "memory", "deleted": True})

    async def _erase(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"vectors": 3, "buffers": 1, "queue": 0, "events": 2})

    async def _note_only(self, request: web.Request) -> None:
        self.keys.append(request.headers.get("authorization"))
        self.asked.append((request.path, {}))

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        await self._note(request)
        chunks: list[Json] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in self.reply]
        memory: Json = {"retrieved": ["m1"], "write_event_id": "evt_1", "error": None}
        chunks.append({"choices": [], "usage": {"total_tokens": 9}, "memory": memory})
        blocks = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
        return await self._stream(request, [f"data: {block}\n\n" for block in blocks])

    async def _add(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"event_id": "evt_1", "status": "queued"}, status=202)

    async def _search(self, request: web.Request) -> web.Response:
        hits = tuple(SearchHit(item=item, score=0.5) for item in self.items)
        return await self._answer(request, FoundMemories.of(SearchResult(results=hits)).model_dump(mode="json"))

    async def _events(self, request: web.Request) -> web.Response:
        return await self._answer(request, EventList.of((self.event,), limit=1).model_dump(mode="json"))

    async def _event(self, request: web.Request) -> web.Response:
        return await self._answer(request, self.event.model_dump(mode="json"))

    async def _retry(self, request: web.Request) -> web.Response:
        self.event = EVENT
        return await self._answer(request, {"event_id": "evt_1", "status": "queued"}, status=202)

    async def _redecide(self, request: web.Request) -> web.Response:
        queued = [] if self.event == EVENT else [{"event_id": "evt_1", "status": "queued"}]
        self.event = EVENT
        return await self._answer(request, {"events": queued, "has_more": bool(queued)}, status=202)

    async def _list(self, request: web.Request) -> web.Response:
        return await self._answer(request, MemoryList.of(ItemPage(items=self.items)).model_dump(mode="json"))

    async def _item(self, request: web.Request) -> web.Response:
        return await self._answer(request, ITEM.model_dump(mode="json"))

    async def _answer(self, request: web.Request, body: object, *, status: int = 200) -> web.Response:
        await self._note(request)
        return web.json_response(body, status=status)

    async def _stream(self, request: web.Request, blocks: Sequence[str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for block in blocks:
            await response.write(block.encode())
        return response


class _Refused(web.HTTPException):
    def __init__(self, status: int, body: str) -> None:
        self.status_code = status
        super().__init__(text=body, content_type="application/json")


def _progress(number: int, done: int) -> Progress:
    return Progress.model_validate({"pass": number, "chunks_done": done, "chunks_total": 2, "passes_max": 3})
