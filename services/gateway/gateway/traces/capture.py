"""Records a loop: its calls, its searches and the chunks it read, up to a size limit.

The recorder wraps the journal, so a resumed loop is recorded in full. A loop over the limit is discarded, because
partial traces would train partial loops.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memloop.ports import ChatModel, Chunk, Chunks, Completion, MemoryIndex, Prompt, Recalled, Span
from memloop.wire.chat import Json
from memloop.wire.traces import HeldMemory, TracedCall


@dataclass(slots=True)
class Recording:
    """The recording so far; nothing is added once it is ``too_long``."""

    max_chars: int
    calls: list[TracedCall] = field(default_factory=list[TracedCall])
    tools: tuple[Json, ...] = ()
    found: dict[str, HeldMemory] = field(default_factory=dict[str, HeldMemory])
    chunks: dict[int, str] = field(default_factory=dict[int, str])
    _chars: int = 0

    @property
    def too_long(self) -> bool:
        """Whether the recording exceeded the limit."""
        return self._chars > self.max_chars

    def document(self) -> str:
        """Return the chunks that were read, in document order."""
        return "".join(self.chunks[index] for index in sorted(self.chunks))

    def room_for(self, chars: int) -> bool:
        """Count the characters. Returns False, and discards the recording, when they exceed the limit."""
        self._chars += chars
        if self.too_long:
            self.calls.clear()
            self.found.clear()
            self.chunks.clear()
        return not self.too_long


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A ChatModel whose calls are recorded."""

    model: ChatModel
    recording: Recording

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply and raise its errors; a failed call is not recorded."""
        completion = await self.model.complete(prompt)
        chars = sum(len(message.text()) for message in prompt.messages) + len(completion.content)
        if self.recording.room_for(chars + len(completion.reasoning)):
            self.recording.tools = self.recording.tools or prompt.tools
            self.recording.calls.append(
                TracedCall(
                    messages=prompt.messages,
                    with_tools=bool(prompt.tools),
                    thinking=prompt.thinking,
                    content=completion.content,
                    reasoning=completion.reasoning,
                    tool_calls=completion.tool_calls,
                    finish_reason=completion.finish_reason,
                )
            )
        return completion


@dataclass(frozen=True, slots=True)
class RecordedIndex:
    """A MemoryIndex whose results are recorded."""

    index: MemoryIndex
    recording: Recording

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        """See ``MemoryIndex``."""
        found = await self.index.search(query, top_k=top_k)
        if self.recording.room_for(sum(len(each.text) for each in found)):
            self.recording.found |= {
                each.id: HeldMemory(id=each.id, text=each.text, valid_from=each.valid_from, key=each.key)
                for each in found
            }
        return found


@dataclass(frozen=True, slots=True)
class RecordedChunks:
    """Chunks whose texts are recorded as they are read."""

    chunks: Chunks
    recording: Recording

    def __len__(self) -> int:
        return len(self.chunks)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        return self.chunks.span(index)

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        chunk = await self.chunks.chunk(index)
        if chunk.index not in self.recording.chunks and self.recording.room_for(len(chunk.text)):
            self.recording.chunks[chunk.index] = chunk.text
        return chunk
