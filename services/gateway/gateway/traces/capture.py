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


class RecordedModel:
    """A ChatModel whose calls are recorded."""

    def __init__(self, model: ChatModel, recording: Recording) -> None:
        self._model = model
        self._recording = recording

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply and raise its errors; a failed call is not recorded."""
        completion = await self._model.complete(prompt)
        chars = sum(len(message.text()) for message in prompt.messages) + len(completion.content)
        if self._recording.room_for(chars + len(completion.reasoning)):
            self._recording.tools = self._recording.tools or prompt.tools
            self._recording.calls.append(
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


class RecordedIndex:
    """A MemoryIndex whose results are recorded."""

    def __init__(self, index: MemoryIndex, recording: Recording) -> None:
        self._index = index
        self._recording = recording

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        """See ``MemoryIndex``."""
        found = await self._index.search(query, top_k=top_k)
        if self._recording.room_for(sum(len(each.text) for each in found)):
            self._recording.found |= {
                each.id: HeldMemory(id=each.id, text=each.text, valid_from=each.valid_from, key=each.key)
                for each in found
            }
        return found


class RecordedChunks:
    """Chunks whose texts are recorded as they are read."""

    def __init__(self, chunks: Chunks, recording: Recording) -> None:
        self._chunks = chunks
        self._recording = recording

    def __len__(self) -> int:
        return len(self._chunks)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        return self._chunks.span(index)

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        chunk = await self._chunks.chunk(index)
        if chunk.index not in self._recording.chunks and self._recording.room_for(len(chunk.text)):
            self._recording.chunks[chunk.index] = chunk.text
        return chunk
