"""What every way to the memory does alike: the native routes, the mem0 drop-in and the MCP tools."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from gateway.access.principal import Principal
from gateway.http.idempotency import subject_of_user
from gateway.memory.erasure import erase
from gateway.memory.jobs import MemoryJob
from gateway.memory.verbatim import adds_of, write_at_once
from gateway.services import Services
from memloop.wire.errors import Unprocessable
from memloop.wire.memory import (
    BatchOutcome,
    BatchResult,
    Erased,
    MemoryAdd,
    MemoryBatch,
    MemoryEvent,
    Namespace,
    SearchResult,
    StoreBatch,
    StoreSearch,
)

_NAME_FIELDS = {"user_id", "agent_id", "run_id"}


def check_has_text(add: MemoryAdd) -> None:
    """Raises Unprocessable when there is nothing to remember."""
    if not any(message.content.strip() for message in add.messages):
        raise Unprocessable("No message has any text.", param="messages", code="empty_messages")


async def write(add: MemoryAdd, services: Services, principal: Principal, *, event_id: str) -> MemoryEvent | None:
    """Queue a write. None at once, or its event once it ended or has been waited for long enough.

    Waits when it is asked to (``sync``) and when no model is (``infer`` false). A write without a model is done at
    once where it can be. Raises Unavailable, Timeout, and what the store says of a text that it refuses.
    """
    job = job_of(add, principal.tenant, event_id=event_id)
    done = None if add.infer else await write_at_once(job, jobs=services.jobs, store=services.store)
    if done is not None:
        return done
    await services.jobs.enqueue(job)
    if add.infer and not add.sync:
        return None
    return await services.jobs.events.wait(principal.tenant, event_id, timeout_s=services.settings.sync_wait_s)


async def write_batch(batch: MemoryBatch, services: Services, principal: Principal) -> BatchResult:
    """All adds in one call of the store, which orders the writes of each user; no event is kept.

    A key that may not read memories is not shown any. Raises what the store raises.
    """
    event_id = f"evt_{secrets.token_hex(16)}"
    parts = [
        adds_of(job_of(MemoryAdd(**dict(add)), principal.tenant, event_id=f"{event_id}:{number}"), token=None)
        for number, add in enumerate(batch.adds)
    ]
    done = await services.store.add_batch(StoreBatch(adds=tuple(add for adds in parts for add in adds)))
    outcomes = iter(done.results)
    shown = principal.allows("memory:read")
    return BatchResult(results=tuple(_joined([next(outcomes) for _ in adds], shown=shown) for adds in parts))


def _joined(parts: Sequence[BatchOutcome], *, shown: bool) -> BatchOutcome:
    """The outcome of an add that became several; the first error is told beside what was stored."""
    memories = tuple(written for part in parts for written in part.memories) if shown else ()
    return BatchOutcome(memories=memories, error=next((part.error for part in parts if part.error), None))


def job_of(add: MemoryAdd, tenant: str, *, event_id: str) -> MemoryJob:
    """The write that the request asks for."""
    return MemoryJob(
        event_id=event_id,
        namespace=Namespace(tenant=tenant, **add.model_dump(include=_NAME_FIELDS)),
        turns=add.messages,
        infer=add.infer,
        metadata=add.metadata,
        timestamp=add.timestamp,
        expires_at=add.expires_at,
        created_at=datetime.now(UTC),
    )


async def search(asked: StoreSearch, services: Services) -> SearchResult:
    """The store's answer, timed. Raises what the store raises."""
    with services.metrics.memory_search_seconds.labels("api").time():
        return await services.store.search(asked)


async def erase_everywhere(namespace: Namespace, services: Services) -> Erased:
    """All of it, and the answers that were kept for an idempotency key. Raises as ``erase`` does."""
    erased = await erase(namespace, jobs=services.jobs, store=services.store, traces=services.traces.records)
    await services.idempotency.forget(namespace.tenant, subject_of_user(namespace.user_id))
    return erased
