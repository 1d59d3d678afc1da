"""A gateway that two tenants' mem0 clients talk to, and clients of both kinds behind one way to call them."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mem0 import AsyncMemoryClient, MemoryClient  # pyright: ignore[reportMissingTypeStubs] - it has none

from tests.fakes.job_engine import Body, Reply, add_memory, last_text
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway
from tests.gateway.whole import whole

Kind: TypeAlias = Literal["sync", "async"]


def remember(body: Body) -> Reply:
    """A memory writer that keeps one fact, whatever was said."""
    assert last_text(body)
    return add_memory("Ann drinks green tea.")


@dataclass(frozen=True)
class Client:
    """A real client; the blocking one runs in a thread, for the gateway lives in this loop."""

    inner: MemoryClient | AsyncMemoryClient

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A method by its name, one of the project's as ``project.get``."""
        found: Any = reduce(getattr, method.split("."), self.inner)
        if inspect.iscoroutinefunction(found):
            return await found(*args, **kwargs)
        return await asyncio.to_thread(found, *args, **kwargs)

    async def added(self, text: str, /, *, user_id: str = "ann", **fields: Any) -> str:
        """The id of a memory that is stored as it is."""
        answer = await self.call("add", text, user_id=user_id, infer=False, **fields)
        assert answer["status"] == "SUCCEEDED"
        return answer["results"][0]["id"]

    async def listed(self, **filters: Any) -> list[str]:
        """The texts that a listing shows."""
        return [one["memory"] for one in (await self.call("get_all", filters=filters))["results"]]


@dataclass(frozen=True)
class DropIn:
    """The gateway, and clients for it."""

    gateway: Gateway

    async def client(self, kind: Kind, key: str = ALICE_KEY) -> Client:
        """A client with a key; both kinds ping in their constructor, and block while they do."""

        def made() -> MemoryClient | AsyncMemoryClient:
            make = MemoryClient if kind == "sync" else AsyncMemoryClient
            return make(api_key=key, host=self.gateway.url)

        return Client(await asyncio.to_thread(made))

    async def alice(self, kind: Kind) -> Client:
        """The first tenant's."""
        return await self.client(kind, ALICE_KEY)

    async def bob(self, kind: Kind) -> Client:
        """The second tenant's."""
        return await self.client(kind, BOB_KEY)

    async def event(self, event_id: str, key: str = ALICE_KEY) -> Any:
        """An add's event, once it ended."""
        found: Any = None

        async def over() -> bool:
            nonlocal found
            path = f"/v1/event/{event_id}/"
            found = (await self.gateway.get(path, headers={"Authorization": f"Token {key}"})).json
            return found["status"] in ("SUCCEEDED", "FAILED")

        await eventually(over)
        return found


@asynccontextmanager
async def drop_in(redis_url: str, folder: Path, answer: Callable[[Body], Reply] = remember) -> AsyncGenerator[DropIn]:
    """Gateway, worker, real store, scripted engine."""
    async with whole(redis_url, folder, answer) as running:
        yield DropIn(running.gateway)
