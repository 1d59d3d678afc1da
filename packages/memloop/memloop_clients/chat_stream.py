"""Parses the events of a streamed chat completion, as a client of the gateway needs them."""

from dataclasses import dataclass

from memloop.wire.base import OpenWire
from memloop.wire.chat import ChatMemory


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed reply; ``reasoning`` is the model's thought before it."""

    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole reply, stripped, and the memory's part in it; None without memory."""

    text: str
    memory: ChatMemory | None


class _Delta(OpenWire):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(OpenWire):
    delta: _Delta = _Delta()


class ChatChunk(OpenWire):
    """One event of a streamed reply."""

    choices: tuple[_Choice, ...] = ()
    memory: ChatMemory | None = None

    def delta(self) -> ChatDelta:
        """Return the first choice's piece."""
        if not self.choices:
            return ChatDelta()
        delta = self.choices[0].delta
        return ChatDelta(delta.content or "", delta.reasoning or delta.reasoning_content or "")
