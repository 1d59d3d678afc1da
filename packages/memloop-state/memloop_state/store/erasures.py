"""Orders the erasures and writes of all store processes, in Redis, so that an erasure wins.

The vectors are in another system, so a check in Redis and an upsert are two steps. Three steps of a write and two of an
erasure close the gap (docs/decisions/0048-erase-wins.md argues why):

    write                                           erasure of a scope
    begin   refused while the scope is erased;      start   changes the scope's mark; from here on no write of the scope
            notes the scope's mark                          begins or opens
    …       reads, resolves, embeds                 enter   waits until no write of the lane is open
    open    refused if the mark has changed;        …       deletes
            lists the write as open                 end     writes may begin again
    …       upserts
    close   takes the write off the list

``open`` and ``enter`` also pass the gate that a swap of the collection closes; ``close`` and ``end`` leave it
(docs/decisions/0053-stores-agree-in-redis.md).

A write that the vector store has refused may be on some of its copies only: ``memloop_state.store.settling``.

So nothing is upserted into a scope during its deletion, nor anything that was read before the deletion's end. A write
that dies while open counts as open for ``OPEN_MS``. A write that takes longer is no longer listed at its end, and
deletes its points again if the mark has changed.
"""

import asyncio
import contextlib
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, Protocol, TypeAlias

import orjson

from memloop.wire.errors import Conflict, Erased, Unavailable
from memloop.wire.memory import Namespace
from memloop_state.link import State
from memloop_state.steps import Partition, Partitions, Steps, digest

OPEN_MS: Final = 20_000
"""Longer than any upsert takes that has not failed (Qdrant's client gives up after 10 s)."""
_LEASE_MS: Final = 60_000
_POLL_S: Final = 0.02
_NOTED: Final = 2

Refusal: TypeAlias = Conflict | Unavailable


class Standing(Protocol):
    """The collection that this process works on. ``gen`` is its generation, ``site`` names the place of all.

    ``has_copies``: a write may be taken by some copies of a point only.
    """

    @property
    def site(self) -> str: ...
    @property
    def gen(self) -> str: ...
    @property
    def has_copies(self) -> bool: ...
    async def catch_up(self) -> None:
        """Turn to the collection in service, if it is another one by now."""
        ...


class Again(Unavailable):
    """Nothing was written: repeat the write after ``catch_up``."""

    catch_up: Callable[[], Awaitable[None]]


class Moved(Again, code="collection_moved"):
    """Another collection is in service, or takes over now."""

    def __init__(self, standing: Standing) -> None:
        super().__init__("Another collection is put in service.", retry_after_s=1.0)
        self.catch_up = standing.catch_up


class Unsettled(Again, code="write_unsettled"):
    """An earlier write of the user may be on some copies only. ``catch_up`` waits a moment; it settles nothing."""

    def __init__(self, namespace: Namespace, catch_up: Callable[[], Awaitable[None]]) -> None:
        super().__init__("An earlier write of this user was refused and is not settled.", retry_after_s=2.0)
        self.namespace = namespace
        self.catch_up = catch_up


@dataclass(frozen=True, slots=True)
class Claim:
    """What a write wants to write to. ``token`` is its lane's, None for a write without a lane.

    ``began`` is the newest token when the write was accepted: an erasure with a newer one has erased it.
    """

    namespace: Namespace
    token: int | None = None
    began: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """An accepted claim. ``mark`` changes with every erasure that covers it."""

    claim: Claim
    mark: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A write that is on its way, and what became of each of its claims."""

    name: str
    gen: str
    note: str
    begun: Sequence[Begun]
    refusals: Sequence[Refusal | None]


class Erasures:
    """Runs the steps of writes and erasures. Every method raises ``Unavailable`` when Redis is unreachable.

    An erasure waits ``open_ms`` for an open write; ``pause`` is awaited between two checks.
    """

    def __init__(
        self,
        link: State,
        standing: Standing,
        *,
        open_ms: int = OPEN_MS,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.keys = Partitions(link)
        self.standing = standing
        self.open_ms = open_ms
        self.pause = pause or partial(asyncio.sleep, _POLL_S)
        self.step = Steps(link, "owners", "gate", "claims")

    async def begin(self, claims: Sequence[Claim]) -> Sequence[Begun | Refusal]:
        """Let each claim in, or refuse it: its token is stale, or its scope is being erased. Raises ``Unsettled``."""
        replies = await self.each("begin", [Begun(claim, "") for claim in claims])
        self._refuse_unsettled(claims, replies, "unsettled")
        return [
            (_refusal(claim, reply) or Begun(claim, reply.partition(" ")[2]))
            for claim, reply in zip(claims, replies, strict=True)
        ]

    async def open(self, begun: Sequence[Begun], name: str, ids: Sequence[str]) -> Opened:
        """List the write of these points as on its way into the vector store. Raises ``Moved`` and ``Unsettled``."""
        gen, copied = self.standing.gen, int(self.standing.has_copies)
        note = orjson.dumps(list(ids)).decode()
        replies = await self.each("open", begun, name, self.open_ms, gen, note, copied)
        if "moved" in replies or "settling" in replies:
            await self.each("close", begun, name, gen)
        if "moved" in replies:
            raise Moved(self.standing)
        self._refuse_unsettled([one.claim for one in begun], replies, "settling")
        return Opened(
            name, gen, note, begun, [_refusal(one.claim, reply) for one, reply in zip(begun, replies, strict=True)]
        )

    async def close(self, opened: Opened) -> Sequence[Refusal | None]:
        """Take the write off the list. The points of a claim that is refused as erased must be taken back."""
        replies = await self.each("close", opened.begun, opened.name, opened.gen)
        if "noted" in replies:
            for part in {self.keys.of_name(one.claim.namespace.lane()) for one in opened.begun}:
                await self._note_again(part, opened.gen, opened.note)
        return [_refusal(one.claim, reply) for one, reply in zip(opened.begun, replies, strict=True)]

    async def refuse(self, opened: Opened) -> None:
        """Note that the vector store has refused the write: it may be on some copies only, or still to come."""
        await self.each("refuse", opened.begun, opened.name)

    def _refuse_unsettled(self, claims: Sequence[Claim], replies: Sequence[str], reply: str) -> None:
        if reply in replies:
            raise Unsettled(claims[replies.index(reply)].namespace, self.pause)

    @contextlib.asynccontextmanager
    async def erasing(self, namespace: Namespace, token: int | None) -> AsyncGenerator[None]:
        """Keep writes out of the scope during the block, which begins once no write is open.

        Raises ``Conflict`` on a stale token, ``Moved``, and ``Unavailable`` if writes may have come in before the
        block's end.
        """
        lane, scope, note = namespace.lane(), namespace.scopes()[-1], namespace.model_dump_json()
        part, name = self.keys.of_name(lane), uuid.uuid4().hex
        site, place = self.standing.site, digest(lane)
        args = [site, place, "" if token is None else token, scope, _LEASE_MS]
        newest, mark = await self.step.rows("start", [part.root], args)
        refuse_stale(token, newest)
        gen = self.standing.gen

        async def ended() -> bool:
            """Let writes in again; return whether none can have come in before."""
            found = await self.step("finish", [part.root], [site, place, scope, mark, gen, name])
            if found == _NOTED:
                await self._note_again(part, gen, note)
            return bool(found)

        try:
            await self._entered(part, [site, place, gen, name, note, _LEASE_MS])
            yield
        except BaseException:
            with contextlib.suppress(Unavailable):
                await ended()
            raise
        if not await ended():
            raise Unavailable("The erasure took too long, or another one began: repeat it.", retry_after_s=1.0)

    async def _entered(self, part: Partition, args: Sequence[str | int]) -> None:
        """Wait until no write of the lane is open, and no store answers from a collection that was replaced."""
        while (reply := await self.step("enter", [part.root], args)) == "wait":
            await self.pause()
        if reply == "moved":
            raise Moved(self.standing)

    async def _note_again(self, part: Partition, gen: str, note: str) -> None:
        """Have replicas keep the note of a change that a copy has to bring. Raises ``Unavailable`` and ``Moved``.

        A replica that took over without the note would lose the change in the copy.
        """
        args = [self.standing.site, gen, note]
        if not await self.step("note_again", [part.root], args, acknowledged=True):
            raise Moved(self.standing)

    async def each(self, step: str, begun: Sequence[Begun], *args: str | int) -> list[str]:
        """Run a step over all claims, once per partition; the replies are in the order of the claims."""
        by_part: dict[Partition, list[int]] = defaultdict(list)
        for at, one in enumerate(begun):
            by_part[self.keys.of_name(one.claim.namespace.lane())].append(at)
        claims = {part: orjson.dumps([_as_json(begun[at]) for at in places]) for part, places in by_part.items()}
        site = self.standing.site
        found = await asyncio.gather(
            *(self.step.rows(step, [part.root], [site, some, *args]) for part, some in claims.items())
        )
        replies = dict(zip(chain(*by_part.values()), chain(*found), strict=True))
        return [replies[at] for at in range(len(begun))]


def stale_token(token: int | None, newest: str) -> Conflict:
    """The refusal of a token that is older than the newest."""
    return Conflict(
        f"fencing token {token} is older than {newest}: another writer holds this lane now", code="stale_fencing_token"
    )


def refuse_stale(token: int | None, newest: str) -> None:
    """Raise ``Conflict`` if the script found a newer token."""
    if newest:
        raise stale_token(token, newest)


def _as_json(begun: Begun) -> dict[str, str | Sequence[str]]:
    claim = begun.claim
    numbers = {"token": claim.token, "began": claim.began}
    texts = {name: "" if number is None else str(number) for name, number in numbers.items()}
    owner = orjson.dumps({"tenant": claim.namespace.tenant, "user_id": claim.namespace.user_id}).decode()
    lane = digest(claim.namespace.lane())
    return {**texts, "mark": begun.mark, "scopes": claim.namespace.scopes(), "user": owner, "lane": lane}


def _refusal(claim: Claim, reply: str) -> Refusal | None:
    state, _, detail = reply.partition(" ")
    if state in {"ok", "noted"}:
        return None
    if state == "late":
        return Unavailable("The write took too long: repeat it.", code="write_too_late", retry_after_s=1.0)
    if state == "stale":
        return stale_token(claim.token, detail)
    return Erased()
