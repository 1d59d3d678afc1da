"""The gate's client of a running gateway: long reads in the background, memory writes that it waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Self, TypeVar

from memloop.ports import Recalled
from memloop.wire.errors import DependencyError, MemloopError, NotFound, Unprocessable
from memloop.wire.long_read import Document, LongRead, LongReadRequest, Strategy
from memloop.wire.memory import BatchResult, Source
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.memory_requests import BatchedAdd, MemoryAdd, MemoryBatch
from memloop_clients.gateway import GatewayClient
from memloop_clients.gateway_memory import ended, root_url
from trainer.data.json_rows import DataError
from trainer.data.retry_policy import RetryPolicy
from trainer.rollout.tasks import DecideTask, ReadTask

_PROBE: Final = "What is written here?"
T = TypeVar("T")


class Gateway:
    """Retries lost calls to a gateway; every call is idempotent.

    Raises as ``GatewayClient`` does. A read or a write may take ``wait_s`` seconds.
    """

    def __init__(self, url: str, *, api_key: str | None, retries: RetryPolicy, wait_s: float) -> None:
        """Raise DataError unless the URL is an http URL."""
        self.url = base_url(url)
        self._client = GatewayClient(self.url, api_key=api_key)
        self._retries = retries
        self._wait_s = wait_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def models(self) -> tuple[str, ...]:
        """Return the IDs of the gateway's models."""
        return await self._get(self._client.models)

    async def profile_ref(self, model: str) -> str:
        """Return the reference of the prompts that the model reads with."""
        request = LongReadRequest(model=model, question=_PROBE, document=Document(text=_PROBE))
        return (await self._get(lambda: self._client.estimate(request))).profile

    async def begin_read(self, task: ReadTask, *, model: str, strategy: Strategy, name: str) -> str:
        """Queue a read behind production's and return its ID. ``name`` makes a repeated call idempotent."""
        request = LongReadRequest(
            model=model,
            question=task.question,
            document=Document(text=task.context),
            strategy=strategy,
            service_tier="flex",
        )
        return await self._get(lambda: self._client.queue_read(request, name=name))

    async def read_ended(self, read_id: str) -> LongRead:
        """Wait for the read's end. Raises Timeout."""
        return await ended(
            lambda: self._get(lambda: self._client.read(read_id)),
            what=f"the read {read_id} (--timeout-s)",
            wait_s=self._wait_s,
        )

    async def forget_read(self, read_id: str) -> None:
        """Delete the read and its document if they still exist; a running read stops."""
        try:
            await self._get(lambda: self._client.delete_read(read_id))
        except NotFound:
            return

    async def remember(self, memories: Sequence[Recalled], *, user_id: str) -> None:
        """Store the texts as the user's memories, each with its own time."""
        adds = tuple(
            BatchedAdd(messages=(Source(role="user", content=each.text, timestamp=each.valid_from),), user_id=user_id)
            for each in memories
        )
        if adds:
            _check_kept(await self._get(lambda: self._client.add_batch(MemoryBatch(adds=adds))))

    async def decided(self, task: DecideTask, *, user_id: str) -> MemoryEvent:
        """Return the memory writer's decision over the turns. The user's ID names the write. Raises Timeout."""
        request = MemoryAdd(messages=task.turns, user_id=user_id)
        event_id = await self._get(lambda: self._client.add(request, name=user_id))
        return await ended(
            lambda: self._get(lambda: self._client.event(event_id)),
            what=f"the write {event_id} (--timeout-s)",
            wait_s=self._wait_s,
        )

    async def forget_user(self, user_id: str) -> None:
        """Erase all data of the user."""
        await self._get(lambda: self._client.erase(user_id))

    async def _get(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run the call with retries. A refusal's error names the gateway and its status."""
        try:
            return await self._retries.get(work)
        except DependencyError:  # its message names the gateway already
            raise
        except MemloopError as error:
            message = f"the gateway {self.url} answered {error.http_status}: {error.message}"
            raise type(error)(message, param=error.param, code=error.code) from error


def base_url(url: str) -> str:
    """Return the URL below which ``/v1`` begins. Raises DataError unless it is an http URL."""
    try:
        return root_url(url)
    except ValueError as error:
        raise DataError(str(error)) from error


def _check_kept(result: BatchResult) -> None:
    refused = next((outcome.error for outcome in result.results if outcome.error), None)
    if refused is not None:
        raise Unprocessable(f"a memory of the row was refused: {refused.message}")
