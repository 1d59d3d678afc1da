"""Bundles the store, the queue of writes and the data that an erasure must reach into one value.

The checks and warnings of ``/readyz`` are here too, the same in the API process and in the worker.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final, Protocol, TypeAlias

from gateway.engine import Backend
from gateway.idempotency import Idempotency
from gateway.memory.handler import WriteFailures
from gateway.memory.jobs import MemoryQueue
from gateway.memory.kept_turns import KeptEvents
from gateway.memory.pending import PendingWrites
from gateway.memory.policed_store import PolicedStore
from gateway.metrics import Metrics
from gateway.policy import Keeper, keeper_of
from gateway.queue import queue_rules
from gateway.settings import GatewaySettings, secret_of
from gateway.traces import TraceKeeper, open_traces
from memloop_clients import Balancing
from memloop_service import Check, Detail, Warn, connects_by, of_app
from memloop_state.link import CHECK, State, check
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


OPTIONAL: Final = frozenset({"engine"})
"""Without an engine a process serves memory, files, webhooks and deletions; other jobs wait."""


class Parts(Protocol):
    """The dependencies of a process."""

    @property
    def state(self) -> State: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def backend(self) -> Backend: ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """``parts`` is called at each check: a process opens its slices after its routes are made."""

    parts: Callable[[], Parts]
    writes: bool = False
    """Whether this process runs the memory writes, and so has seen in which forms their writers reply."""

    @property
    def checks(self) -> Mapping[str, Check]:
        """The check of each dependency, by name."""
        return {
            CHECK: lambda: check(self.parts().state),
            "store": lambda: self.parts().memory.store.check(),
            "engine": lambda: self.parts().backend.models.check(),
        }

    @property
    def warnings(self) -> Mapping[str, Warn]:
        """Refused memory writes, what the store warns of, and engines that do not answer."""
        return {
            "memory_writes": lambda: self.parts().memory.failures.warning(),
            "store": lambda: self.parts().memory.store.warning(),
            "models": lambda: self.parts().backend.models.warning(),
        }

    @property
    def details(self) -> Mapping[str, Detail]:
        """How each model is asked."""
        return {"models": lambda: self.parts().backend.models.details(writes=self.writes)}
