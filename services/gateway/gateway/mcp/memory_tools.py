"""Memory operations as MCP tools. A tool is the model of its arguments; running it calls the native operation."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, Field, JsonValue

from gateway.mcp.call import Call
from gateway.memory import check_has_text, new_event_id, search, write_memory
from memloop.wire.base import Wire
from memloop.wire.keys import Scope
from memloop.wire.limits import Metadata
from memloop.wire.memory import MAX_TEXT_CHARS, ItemPatch, Namespace, Source, UserFields
from memloop.wire.memory_events import EventStatus
from memloop.wire.memory_requests import MemoryAdd, MemorySearch
from memloop.wire.names import Name, check_keys

UserId = Annotated[Name, Field(description="The user whose memory it is.")]
ItemId = Annotated[str, Field(min_length=1, max_length=64, description="The memory's id.")]


class Tool(Wire):
    """The arguments of a tool and its action. The docstring is the description that models read."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    read_only: ClassVar[bool] = False
    destructive: ClassVar[bool] = False

    async def run(self, call: Call) -> BaseModel:
        """Run the tool and return its result. Raises MemloopError."""
        raise NotImplementedError


class Added(Wire):
    """The state of a write. ``memories`` is set once it has completed."""

    event_id: str
    status: EventStatus
    memories: tuple[str, ...] = ()
    error: str | None = None


class Deleted(Wire):
    """A deleted memory."""

    id: str
    deleted: bool = True


class AddMemory(Tool, UserFields):
    """Remember something a user said. A model decides what to keep and merges it with existing memories.

    With infer false the text is stored verbatim.
    """

    name: ClassVar[str] = "memory_add"
    scope: ClassVar[Scope] = "memory:write"

    text: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    user_id: UserId
    metadata: Annotated[Metadata, AfterValidator(check_keys)] = Field(default_factory=dict[str, JsonValue])
    infer: bool = True
    wait: bool = Field(default=False, description="Wait until the memory is written, not only queued.")

    async def run(self, call: Call) -> Added:
        """Queue the write, and wait for it if requested."""
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

    name: ClassVar[str] = "memory_search"
    scope: ClassVar[Scope] = "memory:read"
    read_only: ClassVar[bool] = True

    async def run(self, call: Call) -> BaseModel:
        """Return the hits."""
        await call.allowance.admit()
        return await search(self.in_tenant(call.principal.tenant), call.mcp.memory)


class ListMemories(Tool, UserFields):
    """List all memories of a user, page by page."""

    name: ClassVar[str] = "memory_list"
    scope: ClassVar[Scope] = "memory:read"
    read_only: ClassVar[bool] = True

    user_id: UserId
    cursor: str | None = Field(default=None, max_length=1024, description="The next_cursor of the previous page.")
    limit: int = Field(default=50, ge=1, le=200)

    async def run(self, call: Call) -> BaseModel:
        """Return one page."""
        namespace = self.namespace(call.principal.tenant)
        return await call.mcp.memory.store.items(namespace, cursor=self.cursor, limit=self.limit)


class GetMemory(Tool):
    """Read one memory with its sources and times."""

    name: ClassVar[str] = "memory_get"
    scope: ClassVar[Scope] = "memory:read"
    read_only: ClassVar[bool] = True

    id: ItemId

    async def run(self, call: Call) -> BaseModel:
        """Return the memory."""
        return await call.mcp.memory.store.item(self.id, tenant=call.principal.tenant)


class UpdateMemory(Tool, ItemPatch):
    """Correct a memory. Its previous version stays in its history."""

    name: ClassVar[str] = "memory_update"
    scope: ClassVar[Scope] = "memory:write"

    id: ItemId
    if_version: int | None = Field(default=None, ge=1, description="Update only if the memory has this version.")

    async def run(self, call: Call) -> BaseModel:
        """Update the memory and return its new version."""
        patch = ItemPatch.model_validate(self.model_dump(exclude={"id", "if_version"}, exclude_unset=True))
        return await call.mcp.memory.store.patch(
            self.id, patch, tenant=call.principal.tenant, if_version=self.if_version
        )


class DeleteMemory(Tool):
    """Delete a memory. Searches no longer find it."""

    name: ClassVar[str] = "memory_delete"
    scope: ClassVar[Scope] = "memory:write"
    destructive: ClassVar[bool] = True

    id: ItemId

    async def run(self, call: Call) -> Deleted:
        """Delete the memory and return its id."""
        await call.mcp.memory.store.delete(self.id, tenant=call.principal.tenant)
        return Deleted(id=self.id)
