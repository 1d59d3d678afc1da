"""A gateway without a model: canned answers in the gateway's own shapes, and what it was asked."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from aiohttp import web

from memloop.wire.chat import Json
from memloop.wire.long_read import LongRead, Progress, ReadEvent, ReadUsage, SubQuestion
from memloop.wire.memory import (
    DecisionRecord,
    EventPage,
    ItemPage,
    MemoryEvent,
    MemoryItem,
    SearchHit,
    SearchResult,
    Written,
)

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


class FakeGateway:
    """``refusal`` answers everything with an error; ``read`` is how a read ends, None breaks its stream off."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, Json]] = []
        self.keys: list[str | None] = []
        self.refusal: tuple[int, str] | None = None
        self.read: LongRead | None = ended("completed")
        self.event = EVENT
        self.items: tuple[MemoryItem, ...] = (ITEM,)
        self.reply: Sequence[str] = ("\n\n", "Your locker ", "code is 482.")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self._models),
            web.post("/v1/long-read", self._long_read),
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/memory/add", self._add),
            web.post("/v1/memory/search", self._search),
            web.get("/v1/memory/events", self._events),
            web.get("/v1/memory/events/evt_1", self._event),
            web.get("/v1/memory", self._list),
            web.get("/v1/memory/m1", self._item),
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

    async def _long_read(self, request: web.Request) -> web.StreamResponse:
        await self._note(request)
        events = events_of(self.read or ended("completed"))
        blocks = [f"event: {event.type}\ndata: {event.model_dump_json(exclude_none=True)}\n\n" for event in events]
        return await self._stream(request, [": keep-alive\n\n", *(blocks if self.read else blocks[:-1])])

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
        return await self._answer(request, SearchResult(results=hits).model_dump(mode="json"))

    async def _events(self, request: web.Request) -> web.Response:
        return await self._answer(request, EventPage(events=(self.event,)).model_dump(mode="json"))

    async def _event(self, request: web.Request) -> web.Response:
        return await self._answer(request, self.event.model_dump(mode="json"))

    async def _list(self, request: web.Request) -> web.Response:
        return await self._answer(request, ItemPage(items=self.items).model_dump(mode="json"))

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
