"""Reads an item: by the loop in this process on an engine, or by a gateway that runs the same loop."""

import asyncio
import os
import sys
from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol, TypeAlias

from evaluation.ruler.items import Item
from gateway.long_read.plan import cut, plan_read
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.clients.dialects import DialectName
from memloop.clients.engine import EngineClient
from memloop.clients.gateway import GatewayClient
from memloop.clients.origin import Timeouts
from memloop.loops.journal import Journaled
from memloop.loops.reader import PLAIN, Reader
from memloop.loops.reading import read_questions
from memloop.ports import Checkpoints, Completion, Prompt, Splitter
from memloop.profiles import profile_from_files
from memloop.wire.errors import EngineError
from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadUsage, Strategy
from memloop.wire.reading import ReadingOptions

ReaderKind: TypeAlias = Literal["loop", "gateway"]


@dataclass(frozen=True, slots=True)
class Setup:
    """How to read items. Self-contained, so that it can be sent to another machine, and free of secrets.

    ``profile_files`` and ``tokenizer_json`` (without one, tokens are estimated) are for the loop; a gateway has its
    own. ``key_variable`` names the environment variable with the endpoint's key; ``timeout_s`` bounds one call;
    ``dialect`` is the endpoint's.
    """

    kind: ReaderKind
    model: str
    profile_files: dict[str, str]
    tokenizer_json: bytes | None = None
    strategy: Strategy = "memagent"
    options: ReadingOptions = PLAIN
    max_rereads: int = 2
    chunk_tokens: int | None = None
    memory_tokens: int | None = None
    key_variable: str | None = None
    timeout_s: float = 900.0
    dialect: DialectName = "auto"

    def request(self, item: Item) -> LongReadRequest:
        """Build the gateway's request for the item."""
        return LongReadRequest(
            model=self.model,
            question=item.question,
            document=Document(text=item.context),
            strategy=self.strategy,
            options=self.options,
            max_rereads=self.max_rereads,
            chunk_tokens=self.chunk_tokens,
            memory_tokens=self.memory_tokens,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """An item's answer and its cost; ``raw`` as in ``Record``."""

    answer: str
    raw: str | None
    usage: ReadUsage


class ItemReader(Protocol):
    """Reads items at one endpoint."""

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        """Read the item; calls found in ``paid`` cost nothing. Raises MemloopError."""
        ...

    async def check(self) -> None:
        """Raise MemloopError unless the endpoint answers."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def reader_at(url: str, setup: Setup) -> ItemReader:
    """Create the reader of an endpoint, by the setup's kind."""
    key = os.environ.get(setup.key_variable) if setup.key_variable else None
    timeouts = Timeouts(read_s=setup.timeout_s, total_s=setup.timeout_s)
    if setup.kind == "gateway":
        return GatewayReader(GatewayClient(url, api_key=key, timeouts=timeouts), setup)
    return LoopReader(
        EngineClient(url, model=setup.model, api_key=key, timeouts=timeouts, dialect=setup.dialect), setup
    )


class LoopReader:
    """Runs the gateway's plan and loop on an engine."""

    def __init__(self, client: EngineClient, setup: Setup) -> None:
        self._client = client
        self._setup = setup
        self._profile = profile_from_files(setup.profile_files)
        self._splitter = splitter_of(setup)

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        """See ``ItemReader``."""
        request = self._setup.request(item)
        plan = plan_read(request, profile=self._profile, splitter=self._splitter, max_chars=sys.maxsize)
        chunks = await asyncio.to_thread(cut, item.context, plan, self._splitter)
        model = Journaled(_Seeded(self._client, self._setup, seed), paid)
        (result,) = await read_questions(
            [item.question],
            chunks,
            strategy=request.strategy,
            max_rereads=request.max_rereads,
            reader=Reader(model, plan.profile, options=request.options),
        )
        return Reading(result.answer, result.raw_answer, ReadUsage.of(result.usage))

    async def check(self) -> None:
        """See ``ItemReader``."""
        await self._client.check()

    async def close(self) -> None:
        """See ``ItemReader``."""
        await self._client.close()


class GatewayReader:
    """Uses a gateway's ``/v1/long-read`` as a background job; the gateway's own decoding applies, whatever the seed."""

    def __init__(self, client: GatewayClient, setup: Setup) -> None:
        self._client = client
        self._setup = setup

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        """See ``ItemReader``; the gateway has its own checkpoints."""
        del seed, paid
        read_id = await self._client.queue_read(self._setup.request(item))
        read = await self._client.read_ended(read_id, wait_s=inf)
        if read.status != "completed":
            raise EngineError(f"the read {read.status}: {_reason(read)}")
        return Reading(read.output_text, None, read.usage)

    async def check(self) -> None:
        """See ``ItemReader``."""
        await self._client.models()

    async def close(self) -> None:
        """See ``ItemReader``."""
        await self._client.close()


class _Seeded:
    """A ChatModel whose requests carry a seed."""

    def __init__(self, client: EngineClient, setup: Setup, seed: int) -> None:
        self._client = client
        self._setup = setup
        self._seed = seed

    async def complete(self, prompt: Prompt) -> Completion:
        return await self._client.ask(prompt, model=self._setup.model, seed=self._seed)


def splitter_of(setup: Setup) -> Splitter:
    return TokenizerSplitter(setup.tokenizer_json) if setup.tokenizer_json else EstimatingSplitter()


def _reason(read: LongRead) -> str:
    if read.error is not None:
        return read.error.message
    return read.incomplete_details.reason if read.incomplete_details else "no reason given"
