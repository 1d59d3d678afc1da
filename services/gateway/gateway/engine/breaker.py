"""Guards one engine with a circuit breaker.

An engine of several replicas has a breaker for each of them instead, in its client.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from memloop.ports import Completion, Prompt
from memloop.wire.chat import Json
from memloop.wire.errors import MemloopError, Unreachable
from memloop_clients import CircuitOpen, EngineBusy, RawResponse, ReplicaLoad, ServedWindow
from memloop_clients.balancing import Breaker

_PROBE_S: Final = 3.0
Answer = TypeVar("Answer")
Clock: TypeAlias = Callable[[], float]


class Engine(Protocol):
    """The client of an engine, as a breaker guards it."""

    async def send_raw(self, body: bytes, *, path: str) -> RawResponse:
        """Send a POST and return the open response, which the caller closes."""
        ...

    async def ask(self, prompt: Prompt, *, model: str) -> Completion:
        """Return the model's reply."""
        ...

    async def get_json(self, path: str) -> Json:
        """Read a JSON resource, such as ``models``."""
        ...

    async def window(self, model: str) -> ServedWindow | None:
        """Return what the endpoint states of a model's window."""
        ...

    async def check(self) -> None:
        """Raise unless the engine answers."""
        ...

    @property
    def replicas(self) -> int:
        """The number of replicas that the client balances over; 1 for one server."""
        ...

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load of each replica that the client balances over."""
        ...


class EngineGuard:
    """One engine behind its breaker."""

    def __init__(self, engine: Engine, *, failures: int, open_s: float, clock: Clock = time.monotonic) -> None:
        self._engine = engine
        self._breaker = Breaker(failures=failures, open_s=open_s, clock=clock, answers=(EngineBusy,))

    def is_open(self) -> bool:
        """Return whether requests to the engine, or to all its replicas, are suspended."""
        if self._engine.replicas == 1:
            return self._breaker.is_open()
        return all(load.state in {"ejected", "gone"} for load in self.loads())

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load of each replica that the engine's client balances over."""
        return self._engine.loads()

    async def call(self, ask: Callable[[Engine], Awaitable[Answer]]) -> Answer:
        """Call the engine through the breaker. Raises CircuitOpen, and the errors of the engine's client."""
        if self._engine.replicas > 1:
            return await ask(self._engine)
        await self._breaker.admit(self.check)
        return await self._breaker.watched(ask(self._engine))

    async def check(self) -> None:
        """Raise Unreachable or CircuitOpen unless the engine answers, with any status."""
        try:
            async with asyncio.timeout(_PROBE_S):
                await self._engine.check()
        except (CircuitOpen, Unreachable):
            raise
        except TimeoutError as error:
            raise Unreachable("the engine does not answer") from error
        except MemloopError:
            return
