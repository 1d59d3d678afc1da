"""Memory operations as MCP tools. A tool is the model of its arguments; running it calls the native operation.

Many models, and clients that fill forms, write every argument as a text (``"5"``, ``"true"``, ``'{"a": 1}'``), and
``null`` for one that they leave out. Such an argument is taken as the schema has it; nothing else is guessed.

A model reads every character of a result, and clients cut long ones off where they like: Claude Code at 25,000 tokens.
Lists come in pages; what is still too long has its texts cut, and says so.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final, TypeAlias, TypeVar, cast

import orjson
from pydantic import AfterValidator, BaseModel, Field, JsonValue, ValidationError

from gateway.mcp.surface import Call
from gateway.memory import check_has_text, new_event_id, search, write_memory
from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import Unprocessable
from memloop.wire.fields import Metadata, Name, check_keys
from memloop.wire.lists import Deleted
from memloop.wire.memory import (
    MAX_TEXT_CHARS,
    ItemPatch,
    MemoryItem,
    Namespace,
    PendingTurn,
    SearchHit,
    Source,
    UserFields,
)
from memloop.wire.memory_events import EventStatus
from memloop.wire.memory_requests import MemoryAdd, MemoryChanged, MemorySearch
from memloop_service.http import json_text, strictly

_Arguments = TypeVar("_Arguments", bound=Wire)
_OF_PYTHON: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null"}


def arguments_of(tool: type[_Arguments], given: Json) -> _Arguments:
    """Return the tool with these arguments. Raises as ``strictly`` does."""
    meant = _without_nulls(tool, given)
    try:
        return tool.model_validate_json(json_text(meant), strict=True)
    except ValidationError as error:
        refused = {str(fault["loc"][0]) for fault in error.errors(include_url=False) if fault["loc"]}
    for name in refused & meant.keys() & tool.model_fields.keys():
        if isinstance(value := meant[name], str):
            word = value.strip()
            with suppress(orjson.JSONDecodeError):
                meant[name] = orjson.loads(_OF_PYTHON.get(word, word))
    return strictly(tool, json_text(_without_nulls(tool, meant)))


def _without_nulls(tool: type[Wire], given: Json) -> Json:
    """Return the arguments without those that were left out. A null of a required or an unknown one is refused."""
    fields = tool.model_fields
    optional = {name for name in fields if not fields[name].is_required()}
    return {name: value for name, value in given.items() if value is not None or name not in optional}


MOST_CHARS: Final = 20_000
"""The default, about 5,000 tokens."""
_LEAST_CHARS: Final = 50
_NOTE: Final = "Texts or lists are cut to fit max_chars."
_ROOM_CHARS: Final = 200
"""Left for a page's own fields."""
_Entry = TypeVar("_Entry", bound=BaseModel)


def first_of(entries: Sequence[_Entry], *, most_chars: int) -> Sequence[_Entry]:
    """Return the entries that fit together; at least one, if there is any."""
    left = most_chars - _ROOM_CHARS
    for number, entry in enumerate(entries):
        left -= len(entry.model_dump_json(exclude_none=True)) + 1
        if left < 0:
            return entries[: max(1, number)]
    return entries


def place_of(cursor: str | None) -> int:
    """Return the place that a cursor of ours names. Raises Unprocessable."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise Unprocessable("cursor must be the next_cursor of an earlier result.", param="cursor")
    return int(cursor)


def fitted(result: Json, *, most_chars: int) -> str:
    """Return the result as JSON text, its texts and lists cut where it is too long."""
    text, each = json_text(result).decode(), most_chars
    while len(text) > most_chars and each > _LEAST_CHARS:
        each //= 2
        text = json_text({**cast(Json, _cut(result, each)), "cut": _NOTE}).decode()
    return text


def _cut(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]} … ({len(value) - most} more characters)"
    if isinstance(value, list):
        return [_cut(one, most) for one in value[: max(1, most // _LEAST_CHARS)]]
    if isinstance(value, dict):
        return {name: _cut(one, most) for name, one in value.items()}
    return value


UserId = Annotated[Name, Field(description="The user whose memory it is.")]
ItemId = Annotated[str, Field(min_length=1, max_length=64, description="The memory's id.")]


Cursor: TypeAlias = Annotated[str | None, Field(max_length=1024, description="The next_cursor of the previous result.")]


class Tool(Wire):
    """The arguments of a tool and its action. The docstring is the description that models read."""

    max_chars: int = Field(default=MOST_CHARS, ge=1_000, le=1_000_000, description="The longest result.")

    async def run(self, call: Call) -> BaseModel:
        """Run the tool and return its result. Raises MemloopError."""
        raise NotImplementedError


class Added(Wire):
    """The state of a write. ``memories`` is set once it has completed."""

    event_id: str
    status: EventStatus
    memories: tuple[str, ...] = ()
    error: str | None = None


class Found(Wire):
    """The found memories, best match first, and turns that are not decided on yet."""

    results: tuple[SearchHit, ...]
    pending: tuple[PendingTurn, ...]
    pending_complete: bool
    degraded: bool
    next_cursor: str | None = None


class Part(MemoryItem):
    """A memory, or a part of a long one."""

    next_cursor: str | None = None


def _without_sources(item: MemoryItem) -> MemoryItem:
    """Return the memory without what has its words a second time: its sources, which memory_get shows, and its key."""
    return item.model_copy(update={"sources": (), "key": "" if item.key in item.memory else item.key})


class AddMemory(Tool, UserFields):
    """Remember something a user said. A model decides what to keep and merges it with existing memories.

    With infer false the text is stored verbatim.
    """

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    user_id: UserId
    metadata: Annotated[Metadata, AfterValidator(check_keys)] = Field(default_factory=dict[str, JsonValue])
    infer: bool = True
    wait: bool = Field(default=False, description="Wait until the memory is written, not only queued.")

    async def run(self, call: Call) -> Added:
        add = MemoryAdd(
            messages=(Source(role="user", content=self.text),),
            metadata=self.metadata,
            infer=self.infer,
            sync=self.wait,
            user_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
        )
        check_has_text(add)
        await call.allowance.admit()
        event_id = new_event_id(Namespace(tenant=call.principal.tenant, user_id=self.user_id))
        event = await write_memory(add, call.mcp.memory, call.principal, event_id=event_id)
        if event is None:
            return Added(event_id=event_id, status="queued")
        shown = event.memories if call.principal.allows("memory:read") else ()
        texts = tuple(written.item.memory for written in shown)
        return Added(event_id=event_id, status=event.status, memories=texts, error=event.error)


class SearchMemory(Tool, MemorySearch):
    """Search a user's memories by meaning and keywords, best match first."""

    cursor: Cursor = None

    async def run(self, call: Call) -> Found:
        await call.allowance.admit()
        asked = MemorySearch.model_validate(self.model_dump(include={*MemorySearch.model_fields}))
        memory = call.mcp.memory
        found = await search(asked.in_tenant(call.principal.tenant), memory.store, memory.pending, memory.metrics)
        hits = [hit.model_copy(update={"item": _without_sources(hit.item)}) for hit in found.results]
        every, start = [*hits, *found.pending], place_of(self.cursor)
        shown = first_of(every[start:], most_chars=self.max_chars)
        end = start + len(shown)
        return Found(
            results=tuple(one for one in shown if isinstance(one, SearchHit)),
            pending=tuple(one for one in shown if isinstance(one, PendingTurn)),
            pending_complete=found.pending_complete,
            degraded=found.degraded,
            next_cursor=str(end) if end < len(every) else None,
        )


class ListMemories(Tool, UserFields):
    """List all memories of a user, page by page."""

    user_id: UserId
    cursor: Cursor = None
    limit: int = Field(default=50, ge=1, le=200)

    async def run(self, call: Call) -> BaseModel:
        await call.allowance.admit()
        namespace, store = self.namespace(call.principal.tenant), call.mcp.memory.store
        page = await store.items(namespace, cursor=self.cursor, limit=self.limit)
        shown = first_of([_without_sources(item) for item in page.items], most_chars=self.max_chars)
        if len(shown) < len(page.items):  # a shorter page has a cursor of its own
            page = await store.items(namespace, cursor=self.cursor, limit=len(shown))
        return page.model_copy(update={"items": tuple(map(_without_sources, page.items))})


class GetMemory(Tool):
    """Read one memory with its sources and times. A longer text comes in parts, by cursor."""

    id: ItemId
    cursor: Cursor = None

    async def run(self, call: Call) -> BaseModel:
        """Return the memory, or the part of it from the cursor on. A source of the same words is left out."""
        await call.allowance.admit()
        item = await call.mcp.memory.store.item(self.id, tenant=call.principal.tenant)
        start = place_of(self.cursor)
        others = tuple(source for source in item.sources if source.content.strip() not in item.memory)
        part = item.memory[start : start + self.max_chars // 2]
        end = start + len(part)
        following = str(end) if end < len(item.memory) else None
        shown = _without_sources(item).model_copy(
            update={"memory": part, "sources": () if start or following else others}
        )
        return Part(**dict(shown), next_cursor=following)


class UpdateMemory(Tool, ItemPatch):
    """Correct a memory. Fields that are left out or null stay. The previous version stays in the memory's history."""

    id: ItemId
    if_version: int | None = Field(default=None, ge=1, description="Update only if the memory has this version.")

    async def run(self, call: Call) -> BaseModel:
        await call.allowance.admit()
        patch = ItemPatch.model_validate(self.model_dump(exclude={"id", "if_version", "max_chars"}, exclude_unset=True))
        tenant, store = call.principal.tenant, call.mcp.memory.store
        edited = await store.patch(self.id, patch, tenant=tenant, if_version=self.if_version)
        return _without_sources(edited) if call.principal.allows("memory:read") else MemoryChanged.of(edited)


class DeleteMemory(Tool):
    """Delete a memory. Searches no longer find it."""

    id: ItemId

    async def run(self, call: Call) -> Deleted:
        await call.allowance.admit()
        await call.mcp.memory.store.delete(self.id, tenant=call.principal.tenant)
        return Deleted(id=self.id)
