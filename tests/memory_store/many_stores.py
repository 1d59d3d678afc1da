"""Writers on several stores at once, and their books: every acknowledged value, the longest wait of a write."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx

from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd
from memory_store.items.documents import from_payload, pages
from memory_store.vectors.filters import AllOf
from memory_store.vectors.port import Collection
from tests.fakes.processes import PATIENCE_S

OWNERS = [Namespace(tenant="t", user_id=f"user{number}") for number in range(4)]
_AGAIN_S = 0.02
_ASK_S = 0.1
_COPIED_S = 300.0


@dataclass
class Books:
    """``acknowledged``: the values that a store has taken; ``longest_s``: from a write's first try to its end."""

    acknowledged: list[str] = field(default_factory=list[str])
    longest_s: float = 0.0
    refused: Counter[int] = field(default_factory=Counter[int])


@dataclass
class Writers:
    """Each writes one fact after the other, to a store in turn, until it is taken. ``stores`` may change meanwhile.

    ``name`` stands in every fact; ``rest_s`` lies between two facts of a writer.
    """

    stores: Callable[[], Sequence[httpx.AsyncClient]]
    name: str = "run"
    rest_s: float = 0.0
    books: Books = field(default_factory=Books)

    @asynccontextmanager
    async def writing(self, count: int) -> AsyncGenerator[Books]:
        """So many writers, which finish their last write at the end."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._write(number, over))
            try:
                yield self.books
            finally:
                over.set()

    async def wait_for(self, more: int) -> None:
        """Wait until so many more writes are acknowledged."""
        wanted = len(self.books.acknowledged) + more
        async with asyncio.timeout(PATIENCE_S):
            while len(self.books.acknowledged) < wanted:  # noqa: ASYNC110 - the writers do not signal
                await asyncio.sleep(0.01)

    async def _write(self, writer: int, over: asyncio.Event) -> None:
        written = 0
        while not over.is_set():
            value = f"{self.name}: fact {written} of writer {writer}"
            await self._taken(writer + written, value)
            self.books.acknowledged.append(value)
            written += 1
            await asyncio.sleep(self.rest_s)

    async def _taken(self, turn: int, value: str) -> None:
        draft = MemoryDraft(key=f"key of {value}", value=value)
        add = StoreAdd(namespace=OWNERS[turn % len(OWNERS)], drafts=(draft,), event_id=value)
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            while not await self._tried(turn, add):
                turn += 1
                await asyncio.sleep(_AGAIN_S)
        self.books.longest_s = max(self.books.longest_s, time.monotonic() - began)

    async def _tried(self, turn: int, add: StoreAdd) -> bool:
        stores = self.stores()
        with suppress(httpx.HTTPError):
            answer = await stores[turn % len(stores)].post("/v1/items", content=add.model_dump_json())
            if answer.status_code == 200:
                return True
            self.books.refused[answer.status_code] += 1
        return False


async def flush(stores: Callable[[], Sequence[httpx.AsyncClient]]) -> None:
    """Ask the first store until a flush is done."""
    async with asyncio.timeout(_COPIED_S):
        while True:
            with suppress(httpx.HTTPError):
                if (await stores()[0].post("/v1/admin/flush", timeout=_COPIED_S)).status_code == 200:
                    return
            await asyncio.sleep(_ASK_S)


async def reembed(stores: Callable[[], Sequence[httpx.AsyncClient]], model: str) -> None:
    """Ask one store after the other until the model is in service and no copy is under way."""
    async with asyncio.timeout(_COPIED_S):
        for turn in itertools.count():
            with suppress(httpx.HTTPError):
                store = stores()[turn % len(stores())]
                listed = (await store.get("/v1/admin/collections")).json()
                if model in str(listed.get("in_service")) and listed["job"]["status"] != "running":
                    return
                await store.post("/v1/admin/reembed", json={"model": model})
            await asyncio.sleep(_ASK_S)


async def stored(collection: Collection) -> Counter[str]:
    """How often each text is stored, live."""
    found = [one async for page in pages(collection, AllOf(())) for one in page.found]
    items = [from_payload(one.id, one.payload).item for one in found]
    return Counter(item.memory for item in items if item.status == "activated")
