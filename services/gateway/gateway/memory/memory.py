"""Bundles the store, the queue of writes and the data that an erasure must reach into one value."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from gateway.idempotency import Idempotency
from gateway.memory.failures import WriteFailures
from gateway.memory.jobs import MemoryQueue
from gateway.memory.pending import PendingWrites
from gateway.memory.policed_store import PolicedStore
from gateway.memory.redeciding import KeptEvents
from gateway.metrics import Metrics
from gateway.policy import Keeper, keeper_of
from gateway.queue import queue_rules
from gateway.settings import GatewaySettings, secret_of
from gateway.traces import TraceKeeper, open_traces
from memloop_clients import Balancing
from memloop_service import connects_by, of_app
from memloop_state.link import State
from memloop_state.owners import Owners

Delete: TypeAlias = Callable[[str, str], Awaitable[object]]
"""Deletes the record of a tenant with that id, and everything derived from it. Raises NotFound when it is gone."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memories of every tenant. ``sync_wait_s`` bounds a wait for a write's event."""

    store: PolicedStore
    queue: MemoryQueue
    failures: WriteFailures
    pending: PendingWrites
    kept: KeptEvents
    traces: TraceKeeper
    idempotency: Idempotency
    metrics: Metrics
    sync_wait_s: float
    keeper: Keeper
    owners: Owners
    deletes: Mapping[str, Delete] = field(default_factory=dict[str, Delete])
    """How each kind of record that a user may own is deleted, by the field of ``Erased`` that counts it."""


@asynccontextmanager
async def open_memory(settings: GatewaySettings, state: State, *, metrics: Metrics) -> AsyncGenerator[Memory]:
    """Build the slice from the settings; close the store's client on exit."""
    first, *also = settings.stores
    keeper = keeper_of(settings, state, metrics)
    balancing = Balancing(also=tuple(also), ready_path="readyz")
    tls, key = connects_by(settings), secret_of(settings.store_key)
    async with PolicedStore(first, key=key, balancing=balancing, keeper=keeper, tls=tls) as store:
        metrics.replicas.watch("memory-store", store.loads)
        yield Memory(
            store=store,
            queue=MemoryQueue(
                state,
                keep_ms=int(settings.memory_event_keep_s * 1000),
                rules=queue_rules(settings, state, refused=metrics.jobs_not_admitted),
                refused=metrics.memory_writes_not_admitted,
                keeper=keeper,
            ),
            failures=WriteFailures(state),
            kept=KeptEvents(state),
            pending=PendingWrites(state, wait_s=settings.recall_timeout_s * 2 / 3),
            traces=open_traces(settings, state, metrics),
            idempotency=Idempotency(state, max_bytes=settings.idempotency_max_bytes),
            metrics=metrics,
            sync_wait_s=settings.sync_wait_s,
            keeper=keeper,
            owners=Owners(state),
        )


MemoryDep: TypeAlias = Annotated[Memory, of_app("memory")]
