"""Reads an item: by the loop or in one prompt on an engine, or by a gateway that runs the same loop."""

import asyncio
import os
import sys
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, Protocol, TypeAlias

from evaluation.ruler.items import Item
from gateway.long_read.plan import plan_read
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.loops.journal import Journaled
from memloop.loops.memreread import read_questions
from memloop.loops.reader import PLAIN, Reader, answer
from memloop.ports import Checkpoints, Completion, Prompt, Splitter
from memloop.profiles import Profile, fit, profile_from_files
from memloop.wire.errors import EngineError, InvalidRequest
from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadUsage, Strategy
from memloop.wire.reading import ReadingOptions
from memloop_clients.endpoints import DialectName
from memloop_clients.engine import EngineClient
from memloop_clients.gateway import GatewayClient
from memloop_clients.transport import Timeouts

_TEMPLATE_TOKENS = 64
"""For the chat template around the messages."""
_PIECE_TOKENS = 32
ReaderKind: TypeAlias = Literal["loop", "direct", "gateway"]


@dataclass(frozen=True, slots=True)
class Setup:
    """How to read items. Self-contained, so that it can be sent to another machine, and free of secrets.

    ``profile_files`` and ``tokenizer_json`` (without one, tokens are estimated) are for the engine's readers; a gateway
    has its own. ``window_tokens``: what one call may send and get; the direct reader cuts its document to it, and the
    loop fits a profile of a larger window into it. ``key_variable`` names the environment variable with the endpoint's
    key; ``timeout_s`` bounds one call; ``dialect`` is the endpoint's. ``reply_tokens`` replace those of the profile's
    answer, ``thinking`` its thinking for the direct reader. Without ``sends_seed`` a seed only numbers a run.
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
    window_tokens: int | None = None
    thinking: bool | None = None
    reply_tokens: int | None = None
    sends_seed: bool = True

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
    client = EngineClient(url, model=setup.model, api_key=key, timeouts=timeouts, dialect=setup.dialect)
    return DirectReader(client, setup) if setup.kind == "direct" else LoopReader(client, setup)


class _EngineReader:
    """What the readers that call an engine themselves have in common."""

    def __init__(self, client: EngineClient, setup: Setup) -> None:
        self._client = client
        self._setup = setup
        self._profile = profile_from_files(setup.profile_files)
        self._splitter = splitter_of(setup)

    def _limited(self, profile: Profile) -> Profile:
        """Return the profile with the setup's limit of an answer."""
        if self._setup.reply_tokens is None:
            return profile
        asked = profile.prompts["answer"].limited(self._setup.reply_tokens)
        return replace(profile, prompts={**profile.prompts, "answer": asked})

    def _model(self, seed: int, paid: Checkpoints) -> Journaled:
        return Journaled(_Seeded(self._client, self._setup, seed), paid)

    async def check(self) -> None:
        """See ``ItemReader``."""
        await self._client.check()

    async def close(self) -> None:
        """See ``ItemReader``."""
        await self._client.close()


class LoopReader(_EngineReader):
    """Runs the gateway's plan and loop on an engine."""

    def __init__(self, client: EngineClient, setup: Setup) -> None:
        super().__init__(client, setup)
        if setup.window_tokens is not None and setup.window_tokens < self._profile.budget.window_tokens:
            self._profile = fit(self._profile, self._splitter, window_tokens=setup.window_tokens)

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        """See ``ItemReader``."""
        request = self._setup.request(item)
        plan = plan_read(request, profile=self._profile, splitter=self._splitter, max_chars=sys.maxsize)
        chunk_tokens = plan.budget.chunk_tokens
        chunks = await asyncio.to_thread(self._splitter.split, item.context, chunk_tokens=chunk_tokens)
        (result,) = await read_questions(
            [item.question],
            chunks,
            strategy=request.strategy,
            max_rereads=request.max_rereads,
            reader=Reader(self._model(seed, paid), self._limited(plan.profile), options=request.options),
        )
        return Reading(result.answer, result.raw_answer, ReadUsage.of(result.usage))


class DirectReader(_EngineReader):
    """The baseline without a loop: the profile's answer prompt, with the whole document in the place of the memory.

    A document beyond the window loses its middle, as long-context benchmarks cut (LongBench, arXiv 2308.14508).
    """

    def __init__(self, client: EngineClient, setup: Setup) -> None:
        super().__init__(client, setup)
        self._profile = self._limited(self._profile)
        if setup.thinking is not None:
            asked = replace(self._profile.prompts["answer"], thinking=setup.thinking)
            self._profile = replace(self._profile, prompts={**self._profile.prompts, "answer": asked})

    async def read(self, item: Item, *, seed: int, paid: Checkpoints) -> Reading:
        """See ``ItemReader``."""
        document = await asyncio.to_thread(self._fitted, item)
        found = await answer(item.question, document, model=self._model(seed, paid), profile=self._profile)
        return Reading(found.answer, found.raw, ReadUsage.of(found.usage))

    def _fitted(self, item: Item) -> str:
        if self._setup.window_tokens is None:
            return item.context
        prompt = self._profile.prompt("answer", problem=item.question, memory="")
        around = sum(self._splitter.count(str(message.content)) for message in prompt.messages) + _TEMPLATE_TOKENS
        room = self._setup.window_tokens - around - (prompt.sampling.max_tokens or 0)
        return without_middle(item.context, room, self._splitter)


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
    """A ChatModel whose requests carry a seed, where the setup sends one."""

    def __init__(self, client: EngineClient, setup: Setup, seed: int) -> None:
        self._client = client
        self._setup = setup
        self._seed = seed

    async def complete(self, prompt: Prompt) -> Completion:
        seed = self._seed if self._setup.sends_seed else None
        return await self._client.ask(prompt, model=self._setup.model, seed=seed)


def without_middle(text: str, tokens: int, splitter: Splitter) -> str:
    """Return the text if it has at most ``tokens`` tokens, else its beginning and end with about as many together.

    Raises InvalidRequest when there is no room for any text.
    """
    if tokens < 2 * _PIECE_TOKENS:
        raise InvalidRequest(f"the window leaves {max(tokens, 0)} tokens for the document", code="window_too_small")
    if splitter.count(text) <= tokens:
        return text
    pieces = list(splitter.split(text, chunk_tokens=_PIECE_TOKENS))
    half = tokens // _PIECE_TOKENS // 2
    return "".join(piece.text for piece in (*pieces[:half], *pieces[-half:]))


def splitter_of(setup: Setup) -> TokenizerSplitter | EstimatingSplitter:
    return TokenizerSplitter(setup.tokenizer_json) if setup.tokenizer_json else EstimatingSplitter()


def _reason(read: LongRead) -> str:
    if read.error is not None:
        return read.error.message
    return read.incomplete_details.reason if read.incomplete_details else "no reason given"
