"""What every way to the memory does alike: the native routes, the mem0 drop-in and the MCP tools."""

from gateway.erasure import erase
from gateway.idempotency import subject_of_user
from gateway.principal import Principal
from gateway.services import Services
from memloop.wire.errors import Unprocessable
from memloop.wire.memory import Erased, MemoryAdd, MemoryEvent, Namespace, SearchResult, StoreSearch

_NAME_FIELDS = {"user_id", "agent_id", "run_id"}


def check_has_text(add: MemoryAdd) -> None:
    """Raises Unprocessable when there is nothing to remember."""
    if not any(message.content.strip() for message in add.messages):
        raise Unprocessable("No message has any text.", param="messages", code="empty_messages")


async def write(add: MemoryAdd, services: Services, principal: Principal, *, event_id: str) -> MemoryEvent | None:
    """Queue a write. None at once, or its event once it ended or has been waited for long enough.

    Waits when it is asked to (``sync``) and when no model is (``infer`` false). Raises Unavailable, Timeout.
    """
    await services.jobs.enqueue_memory_write(
        Namespace(tenant=principal.tenant, **add.model_dump(include=_NAME_FIELDS)),
        add.messages,
        infer=add.infer,
        metadata=add.metadata,
        timestamp=add.timestamp,
        expires_at=add.expires_at,
        event_id=event_id,
    )
    if add.infer and not add.sync:
        return None
    return await services.jobs.events.wait(principal.tenant, event_id, timeout_s=services.settings.sync_wait_s)


async def search(asked: StoreSearch, services: Services) -> SearchResult:
    """The store's answer, timed. Raises what the store raises."""
    with services.metrics.memory_search_seconds.labels("api").time():
        return await services.store.search(asked)


async def erase_everywhere(namespace: Namespace, services: Services) -> Erased:
    """Items, buffers, waiting writes, events, and answers kept for an idempotency key. Raises as ``erase`` does."""
    erased = await erase(namespace, jobs=services.jobs, store=services.store)
    await services.idempotency.forget(namespace.tenant, subject_of_user(namespace.user_id))
    return erased
