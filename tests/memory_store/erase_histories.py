"""Histories of two store processes: an erasure and other writes, in an order that a seed decides."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import cast

from redis import Redis

from memloop.wire.errors import Conflict, NotFound
from memloop.wire.memory import (
    BatchResult,
    Buffer,
    Erased,
    ItemPatch,
    MemoryDraft,
    Namespace,
    Source,
    StoreAdd,
)
from memloop.wire.store_requests import MemoryLine, NumberedLine, StoreExport, StoreImport
from memloop_state.link import State
from memloop_state.steps import Partitions
from memory_store.items import tools, transfer
from memory_store.items.documents import from_payload
from memory_store.items.tools import Owned
from tests.fakes.interleaving import Interleaving
from tests.fakes.plain_vectors import PlainCollections
from tests.fakes.virtual_clock import ClockedRedis, VirtualClock
from tests.memory_store.api import day
from tests.memory_store.two_replicas import Replica, replica

WRITERS_TOKEN, ERASURES_TOKEN = 5, 9
OWNER = Namespace(tenant="t", user_id="alice", agent_id="a")
OTHER_AGENT = OWNER.model_copy(update={"agent_id": "b"})
BOB = Namespace(tenant="t", user_id="bob")
SCOPES = (OWNER, OWNER.model_copy(update={"agent_id": None}))

Write = Callable[["History", Replica], Coroutine[object, object, object]]


def add(key: str, value: str, *, token: int | None = None, of: Namespace = OWNER, event: str | None = None) -> StoreAdd:
    draft = MemoryDraft(key=key, value=value)
    return StoreAdd(namespace=of, drafts=(draft,), timestamp=day(2), fencing_token=token, event_id=event)


@dataclass
class History:
    """What was stored before, and two processes that work on it at once. ``of_job`` are the writes with a token."""

    client: Redis
    schedule: Interleaving
    collections: PlainCollections
    replicas: list[Replica] = field(default_factory=list[Replica])
    city: str = ""
    deleted: str = ""
    lines: list[MemoryLine] = field(default_factory=list[MemoryLine])
    left_behind: set[str] = field(default_factory=set[str])
    erased_after: int | None = None
    _erasing: bool = False

    @classmethod
    async def begin(cls, client: Redis, seed: int, clock: VirtualClock, *, stall_s: float = 0.0) -> "History":
        """Two processes after some earlier writes."""
        client.flushdb()  # pyright: ignore[reportUnknownMemberType]
        schedule = Interleaving(seed, clock, stall_s=stall_s)
        history = cls(client, schedule, PlainCollections(turn=schedule.turn))
        clocked = cast("Redis", cast("object", ClockedRedis(client, clock)))
        history.replicas = [await replica(clocked, history.collections, schedule.turn) for _ in range(2)]
        await history._write_before()
        return history

    async def _write_before(self) -> None:
        one = self.replicas[0]
        [city] = (await one.writer.add(add("City", "seed: Rome", event="e0"))).results
        [pet] = (await one.writer.add(add("Pet", "seed: a cat"))).results
        await one.writer.add(add("Food", "seed: pasta", of=OTHER_AGENT))
        await one.buffers.put(buffer("seed: hm"))
        self.lines = list((await transfer.export(one.tools, StoreExport(scope=OWNER))).lines)
        await one.items.delete(Owned("t", pet.item.id), if_version=None)
        self.city, self.deleted = city.item.id, pet.item.id

    def texts(self, of: Namespace) -> list[str]:
        """What is stored of exactly this namespace, in every collection but those that a re-embedding has left."""
        kept = [stored for name, stored in self.collections.stored.items() if name not in self.left_behind]
        points = [point for stored in kept for point in stored.values()]
        records = [from_payload(point.id, point.payload) for point in points]
        return [record.item.memory for record in records if record.namespace == of]

    def texts_in_service(self, of: Namespace) -> list[str]:
        """The same of the collection that every request reads."""
        elsewhere = {*self.collections.stored} - {self.collections.in_service[-1]}
        return replace(self, left_behind=elsewhere).texts(of)

    def watch_erasure(self) -> None:
        """Note the number of steps after which the erasure lets writes in again."""
        lane = OWNER.lane()
        key = Partitions(cast("State", cast("object", self.client))).of_name(lane).hidden("erasures", lane)
        erasing = any(field.startswith("until ") for field in cast("list[str]", self.client.hkeys(key)))
        if self._erasing and not erasing:
            self.erased_after = len(self.schedule.steps)
        self._erasing = erasing

    async def buffered(self) -> list[str]:
        page = await self.replicas[0].buffers.page("t", OWNER.user_id)
        return [turn.content for one in page.buffers for turn in one.turns]


def buffer(text: str) -> Buffer:
    return Buffer(namespace=OWNER, turns=(Source(role="user", content=text),))


async def job(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "job: Oslo", token=WRITERS_TOKEN))


async def direct(of: History, at: Replica) -> object:
    return await at.writer.add(add("Work", "direct: pilot"))


async def replay(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "seed: Rome", token=WRITERS_TOKEN, event="e0"))


async def restated(of: History, at: Replica) -> object:
    return await at.writer.add(add("City", "restated: Paris", event="e9"))


async def batch(of: History, at: Replica) -> BatchResult:
    return await at.writer.add_batch([add("Car", "batch: red"), add("Car", "batch: blue", of=BOB)])


async def edit(of: History, at: Replica) -> object:
    return await at.items.edit(Owned("t", of.city), ItemPatch(memory="edit: Rome"), if_version=None)


async def retag(of: History, at: Replica) -> object:
    return await at.items.edit(Owned("t", of.city), ItemPatch(tags=("edit",)), if_version=None)


async def delete(of: History, at: Replica) -> object:
    return await at.items.delete(Owned("t", of.city), if_version=None)


async def recover(of: History, at: Replica) -> object:
    return await tools.recover(at.tools, Owned("t", of.deleted))


async def accepted_batch(of: History, at: Replica) -> BatchResult:
    return await at.writer.add_batch([add("Job", "accepted_batch: nurse")], began=WRITERS_TOKEN)


async def restore(of: History, at: Replica) -> object:
    return await transfer.take(at.tools, imported(of, "restore:"))


async def accepted_restore(of: History, at: Replica) -> object:
    return await transfer.take(at.tools, imported(of, "accepted_restore:", began=WRITERS_TOKEN))


def imported(of: History, prefix: str, *, began: int | None = None) -> StoreImport:
    texts = [line.model_dump_json().replace("seed:", prefix) for line in of.lines]
    numbered = tuple(NumberedLine(number=number, text=text) for number, text in enumerate(texts, start=1))
    return StoreImport(tenant="t", lines=numbered, began=began)


async def buffering(of: History, at: Replica) -> object:
    return await at.buffers.put(buffer("buffering: hm"), token=WRITERS_TOKEN)


WRITES: tuple[Write, ...] = (
    job,
    direct,
    replay,
    restated,
    batch,
    accepted_batch,
    edit,
    retag,
    delete,
    recover,
    restore,
    accepted_restore,
    buffering,
)
_BEGAN_BEFORE = {"seed", "job", "buffering", "accepted_batch", "accepted_restore"}
"""Writes whose token is older than the erasure's; they are refused even if they reach the store after it."""


async def erase(of: History, at: Replica, scope: Namespace) -> Erased:
    return await at.items.erase(scope, token=ERASURES_TOKEN)


async def watch(at: Replica, over: asyncio.Event) -> None:
    """What a process does beside its requests."""
    while not over.is_set():
        await at.membership.catch_up()


def is_later(text: str, history: History) -> bool:
    """Whether the text comes from a write, without a token, that began when the erasure had ended."""
    name = text.partition(":")[0]
    steps = history.schedule
    after = steps.last("erase") if history.erased_after is None else history.erased_after
    return name not in _BEGAN_BEFORE and steps.first(name) >= after


def check_what_stays(history: History, scope: Namespace, results: dict[str, object], seed: int) -> None:
    refused = [one for one in results.values() if isinstance(one, Exception)]
    assert all(isinstance(one, Conflict | NotFound) for one in refused), f"seed {seed}: {refused!r}"
    assert history.texts(OTHER_AGENT) == ([] if scope.agent_id is None else ["seed: pasta"])
    assert history.texts(BOB) == (["batch: blue"] if "batch" in results else [])
