"""The ports of the loops: what a loop needs from the world, and nothing about how it is done.

A gateway puts an engine behind HTTP here, a trainer a rollout engine that records tokens, a test a script.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, TypeVar

from memloop.wire.chat import ChatMessage, Json, ToolCall
from memloop.wire.memory import NamedTime, Usage

ToolChoice: TypeAlias = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. ``max_tokens`` counts the reply's tokens, thinking included."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """JSON that a reply may be held to, where the engine can do that.

    ``schema`` has an object at its root, no references, and every property is required: the part of JSON Schema that
    all engines take. ``words`` ask for that JSON; they join the prompt only where the engine holds the reply to it.
    """

    name: str
    schema: Json
    words: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a chat model. ``thinking`` switches the chat template's thinking mode.

    ``reply`` is the JSON that the reply may be. Engines that cannot hold a reply to it are asked in the prompt's words.
    ``branch`` separates calls that run side by side (``s3/q0/``). It is part of a journal's keys and never sent.
    ``name`` is the profile's name of the prompt (``read``, ``judge``), for hosts that ask several models; never sent.
    ``affinity`` is equal for prompts that begin alike, for hosts that choose among replicas of an engine; never sent.
    """

    messages: tuple[ChatMessage, ...]
    sampling: Sampling
    tools: tuple[Json, ...] = ()
    tool_choice: ToolChoice = "auto"
    thinking: bool = False
    reply: ReplyFormat | None = None
    branch: str = ""
    name: str = ""
    affinity: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply. ``finish_reason`` is the engine's: ``stop``, ``length``, ``tool_calls``, …

    ``content`` is the text as the engine gave it (it may still hold ``<think>`` or ``<tool_call>`` when the
    engine's own parser failed); ``reasoning`` is what the engine split off.
    """

    content: str
    finish_reason: str = "stop"
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage(llm_calls=1)


class ChatModel(Protocol):
    """A model that answers one prompt. Failures raise ``memloop.wire.errors.DependencyError``; a reply never fails."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory as the memory writer and the chat see it. ``key`` is empty where its source has none."""

    id: str
    text: str
    valid_from: datetime
    key: str = ""
    times: tuple[NamedTime, ...] = ()


class MemoryIndex(Protocol):
    """Search in one namespace (the adapter is bound to it)."""

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        """Return the best memories first, at most ``top_k``."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: ``text == document[start:end]`` in characters, ``tokens`` by the model's tokenizer."""

    index: int
    start: int
    end: int
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Span:
    """Where a chunk lies in its document (in characters), and its tokens."""

    start: int
    end: int
    tokens: int


class Chunks(Protocol):
    """A document in chunks, in order. Where each lies is known; its text is loaded when it is asked for.

    So a loop may go over a document of any size as often as it likes, and holds one chunk at a time.
    """

    def __len__(self) -> int:
        """Return how many chunks there are."""
        ...

    def span(self, index: int) -> Span:
        """Return where chunk ``index`` (from 0) lies. Raises IndexError."""
        ...

    async def chunk(self, index: int) -> Chunk:
        """Chunk ``index`` with its text. Raises IndexError, and DependencyError when the text cannot be fetched."""
        ...


class HeldChunks(tuple[Chunk, ...]):
    """The chunks of a document that is in memory as a whole; a ``Chunks``, and a tuple."""

    __slots__ = ()

    def span(self, index: int) -> Span:
        chunk = self[index]
        return Span(chunk.start, chunk.end, chunk.tokens)

    async def chunk(self, index: int) -> Chunk:
        return self[index]


class Splitter(Protocol):
    """Counts and cuts by the served model's tokens."""

    @property
    def name(self) -> str:
        """What decides where the cuts are: two splitters of one name cut alike. Letters, digits, dashes."""
        ...

    def count(self, text: str) -> int:
        """Tokens of the text, special tokens not added."""
        ...

    def split(self, text: str, *, chunk_tokens: int) -> HeldChunks:
        """Consecutive chunks of at most ``chunk_tokens`` tokens that join to the text exactly."""
        ...

    def stream(self, blocks: Iterable[str], *, chunk_tokens: int) -> Iterator[Chunk]:
        """Yield the chunks that ``split`` makes of the joined blocks, while holding little more than one of them."""
        ...


class Checkpoints(Protocol):
    """Replies that were already paid for, by call key; a resumed loop replays them and goes on."""

    async def load(self, key: str) -> Completion | None:
        """Return the reply under the key, or None."""
        ...

    async def save(self, key: str, completion: Completion) -> None:
        """Keep the reply durably before the loop goes on."""
        ...


Step = TypeVar("Step")
Report: TypeAlias = Callable[[Step], Awaitable[None]]
"""A callback that a loop awaits after every step."""


async def discard(step: object) -> None:
    """A report that drops every step."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chunks of ``source`` at ``positions``, in that order; each keeps its number in the document."""

    source: Chunks
    positions: Sequence[int]

    def __len__(self) -> int:
        return len(self.positions)

    def span(self, index: int) -> Span:
        return self.source.span(self.positions[index])

    async def chunk(self, index: int) -> Chunk:
        return await self.source.chunk(self.positions[index])
