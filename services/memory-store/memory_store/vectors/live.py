"""The collection in service: the same for both adapters, opened at start, and replaced between two calls."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from memloop.chores import alongside
from memloop.wire.errors import DependencyError, Timeout, Unavailable
from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Collection, Collections, Found, Page, Placed, Point, Query, Ranked, VectorState
from memory_store.vectors.schema import CollectionSpec, EmbeddingMismatch, ServerTooOld

_CLOSING_S = 60.0


class Gate:
    """``shared`` for writes and searches, ``exclusive`` to replace the collection that they work on.

    Work inside the gate finishes when it closes; new work waits until it opens. A task enters the gate before it takes
    any lock and never twice: a task that waits for a closed gate must hold nothing that the work inside needs.
    ``closing_s``: how long ``exclusive`` waits for the work inside.
    """

    def __init__(self, *, closing_s: float = _CLOSING_S) -> None:
        self._closing_s = closing_s
        self._inside = 0
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Enters beside other shared work."""
        while not self._open.is_set():
            await self._open.wait()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._empty.set()

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncGenerator[None]:
        """Enters alone. Raises ``Unavailable``, and opens again, when the work inside does not finish in time."""
        async with self._closing:
            self._open.clear()
            try:
                try:
                    async with asyncio.timeout(self._closing_s):
                        await self._empty.wait()
                except TimeoutError as error:
                    message = f"writes and searches did not pause within {self._closing_s:g} s; try again"
                    raise Unavailable(message) from error
                yield
            finally:
                self._open.set()


SHARED = "shared"
"""The site of collections that several processes open."""
_RETRY_AFTER_S = 2.0


class LiveCollection:
    """``Collection``: hands everything on to the one in service, which another one can replace between two calls.

    ``site`` names the place of the collections. ``confirm`` is awaited before each read where another process can put
    another collection in service; it raises ``Unavailable`` if one may have.
    """

    def __init__(self, collections: Collections, *, site: str = SHARED) -> None:
        self.collections = collections
        self.site = site
        self.opened = asyncio.Event()
        self.confirm: Callable[[], Awaitable[None]] | None = None
        self._current: Collection | None = None
        self._spec: CollectionSpec | None = None

    async def open(self, spec: CollectionSpec) -> None:
        """Open the collection in service, or make the first."""
        self._spec = spec
        name = spec.choose(await self.collections.names(), await self.collections.serving())
        current = await self.collections.open(spec, name)
        if await self.collections.serving() != name:
            await self.collections.serve(name)
        self._current = current
        self.opened.set()

    async def close(self) -> None:
        if self._current:
            await self._current.close()
            self._current = None
        await self.collections.close()

    async def archive(self) -> Path:
        """The collection in service as a new tar file. The caller has paused writes. Raises ``NotSupported``."""
        return await self.collections.archive(self._now)

    @property
    def name(self) -> str:
        """Of the collection in service."""
        return self._now.name

    @property
    def _now(self) -> Collection:
        if self._current is None:
            raise _not_open()
        return self._current

    @property
    def spec(self) -> CollectionSpec:
        """The model and dimension of its vectors."""
        if self._spec is None:
            raise _not_open()
        return self._spec

    def replace(self, other: Collection, spec: CollectionSpec) -> Collection:
        """Work on the other one; the one before. The caller has paused writes and searches."""
        before, self._current, self._spec = self._now, other, spec
        return before

    async def state(self) -> VectorState | None:
        """What the Qdrant server is, and how the collection lies on it; None of embedded vectors."""
        return None

    async def warning(self) -> str | None:
        """A sentence for the operator about that; None where all is as it was asked for."""
        state = await self.state()
        return state.warning if state else None

    async def ping(self) -> None:
        await (await self._confirmed()).ping()

    async def admit(self) -> None:
        await self._now.admit()

    async def upsert(self, points: Sequence[Point]) -> None:
        await self._now.upsert(points)

    async def delete(self, *, where: Condition) -> None:
        await self._now.delete(where=where)

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        return await (await self._confirmed()).get(ids, where=where, agreed=agreed)

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        return await (await self._confirmed()).scroll(where=where, limit=limit, start_id=start_id)

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        return await (await self._confirmed()).rank(queries, where=where, corpus=corpus, limit=limit)

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        return await (await self._confirmed()).newest(where=where, limit=limit)

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        return await (await self._confirmed()).placed(where=where, limit=limit)

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        return await (await self._confirmed()).values(field, where=where, limit=limit)

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        return await (await self._confirmed()).nearest(dense, where=where, limit=limit)

    async def count(self, *, where: Condition) -> int:
        return await (await self._confirmed()).count(where=where)

    async def _confirmed(self) -> Collection:
        if self._current is None:
            raise _not_open()
        if self.confirm:
            await self.confirm()
        return self._now


def _not_open() -> Unavailable:
    return Unavailable("The vectors are not open.", code="vectors_not_open", retry_after_s=_RETRY_AFTER_S)


_RETRY_S = 1.0
_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_open(vectors: LiveCollection, spec: CollectionSpec) -> AsyncGenerator[None]:
    """Open the collection, or keep trying in the background as long as the server is away.

    Every call of the collection raises ``Unavailable`` until then. Raises what ``open`` raises if waiting cannot help.
    The caller closes the collection.
    """
    try:
        await _open(vectors, spec)
    except (Unavailable, Timeout) as error:
        _log.warning("waiting for the vectors, not ready until then: %s (%r)", error.message, error.__cause__)
    async with alongside(_until_open(vectors, spec)):
        yield


async def _open(vectors: LiveCollection, spec: CollectionSpec) -> None:
    await vectors.open(spec)
    state = None
    with contextlib.suppress(DependencyError):
        state = await vectors.state()
    _log.info("collection %s is open, on %s", spec.name, state or "embedded vectors")
    if state and state.warning:
        _log.warning("%s", state.warning)


async def _until_open(vectors: LiveCollection, spec: CollectionSpec) -> None:
    """Try for ever; log each refusal that waiting cannot end, once."""
    logged = set[str]()
    while not vectors.opened.is_set():
        await asyncio.sleep(_RETRY_S)
        try:
            await _open(vectors, spec)
        except (Unavailable, Timeout):
            continue
        except (DependencyError, EmbeddingMismatch, ServerTooOld) as error:
            if str(error) not in logged:
                _log.error("the vectors cannot be opened: %s", error)
                logged.add(str(error))
